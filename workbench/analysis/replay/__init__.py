"""What a step would take if something cost nothing: recorded work replayed by what it waits for.

A step becomes a graph of waits: the host's threads in order, launches to their work, streams in
order, waits between streams, and threads that wait for the device. Replayed as recorded it takes
exactly what was measured; replayed without a piece it gives the most that the piece can save.
"""
