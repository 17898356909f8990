/** Columns of numbers that keep their last rows; the oldest row gives way. */

export class Ring {
  /** @param {string[]} names @param {number} capacity */
  constructor(names, capacity) {
    this.names = names;
    this.capacity = capacity;
    this.length = 0;
    // Twice the room: rows stay contiguous, and moving them costs once per `capacity` rows.
    /** @type {Record<string, Float64Array>} */
    this.room = Object.fromEntries(names.map((name) => [name, new Float64Array(2 * capacity)]));
    this.start = 0;
  }

  clear() {
    this.length = 0;
    this.start = 0;
  }

  /** Append rows; a missing column is not measured. @param {Record<string, ArrayLike<number>>} rows */
  push(rows, /** @type {number} */ count) {
    const skip = Math.max(0, count - this.capacity);
    const adding = count - skip;
    if (this.start + this.length + adding > 2 * this.capacity) this.move();
    const end = this.start + this.length;
    for (const name of this.names) {
      const column = rows[name];
      const room = this.room[name];
      for (let i = 0; i < adding; i += 1) room[end + i] = column ? column[skip + i] : NaN;
    }
    this.length += adding;
    const over = this.length - this.capacity;
    if (over > 0) {
      this.start += over;
      this.length -= over;
    }
  }

  move() {
    for (const name of this.names) {
      this.room[name].copyWithin(0, this.start, this.start + this.length);
    }
    this.start = 0;
  }

  /** The rows of one column, oldest first; a view that the next push may change. */
  column(/** @type {string} */ name) {
    return this.room[name].subarray(this.start, this.start + this.length);
  }

  /** The newest value of a column; NaN without any. @param {string} name */
  last(name) {
    return this.length ? this.room[name][this.start + this.length - 1] : NaN;
  }
}
