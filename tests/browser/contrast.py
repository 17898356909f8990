"""How well text stands out from what is behind it."""

from playwright.sync_api import Locator


def contrast(part: Locator) -> float:
    """WCAG contrast ratio of an element's text to the first opaque background behind it."""
    return part.evaluate(
        """(element) => {
          const parts = (colour) => {
            const [r, g, b, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
            return { rgb: [r, g, b], alpha };
          };
          const luminance = (rgb) => {
            const [r, g, b] = rgb.map((c) => c / 255)
              .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          let behind = element;
          const background = () =>
            behind ? parts(getComputedStyle(behind).backgroundColor) : parts("rgb(255, 255, 255)");
          while (background().alpha === 0) behind = behind.parentElement;
          const ground = background().rgb;
          const { rgb, alpha } = parts(getComputedStyle(element).color);
          const text = rgb.map((c, i) => alpha * c + (1 - alpha) * ground[i]);
          const [low, high] = [luminance(text), luminance(ground)].sort((a, b) => a - b);
          return (high + 0.05) / (low + 0.05);
        }"""
    )
