"""The timeline: a trace as lanes on one clock, packed for the page that draws it."""
