/** Moments of a training. */

/** Time of day of a training: 0:07, 12:45, 1:02:03. @param {number} seconds */
export function clockText(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
