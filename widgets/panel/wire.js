/** What the kernel sends: JSON beside binary columns. */

/**
 * @typedef {{count: number, columns: string[], wide: string[], reset: boolean, pooled: number}} Block
 */

/** Bytes of a buffer, whatever the front end hands over: DataView, Uint8Array or ArrayBuffer. */
function bytes(/** @type {DataView | Uint8Array | ArrayBuffer} */ buffer) {
  if (buffer instanceof ArrayBuffer) return buffer.slice(0);
  return buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength);
}

/**
 * The rows of a block: `wide` columns as doubles in the first buffer, `columns` as floats in the
 * second, column after column.
 * @param {Block} block @param {(DataView | Uint8Array | ArrayBuffer)[]} buffers
 * @returns {Record<string, Float64Array | Float32Array>}
 */
export function unpack(block, buffers) {
  const { count, columns, wide } = block;
  const doubles = new Float64Array(bytes(buffers[0]));
  const floats = new Float32Array(bytes(buffers[1]));
  if (doubles.length !== count * wide.length || floats.length !== count * columns.length) {
    throw new Error("A message of the kernel is incomplete.");
  }
  /** @type {Record<string, Float64Array | Float32Array>} */
  const rows = {};
  wide.forEach((name, i) => (rows[name] = doubles.subarray(i * count, (i + 1) * count)));
  columns.forEach((name, i) => (rows[name] = floats.subarray(i * count, (i + 1) * count)));
  return rows;
}
