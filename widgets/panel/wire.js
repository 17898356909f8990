/** What the kernel sends: JSON beside binary columns. */

import { bytesOf } from "../../pages/buffers.js";

/**
 * @typedef {{count: number, columns: string[], wide: string[], reset: boolean, pooled: number}} Block
 */

/**
 * The rows of a block: `wide` columns as doubles in the first buffer, `columns` as floats in the
 * second, column after column.
 * @param {Block} block @param {(DataView | Uint8Array | ArrayBuffer)[]} buffers
 * @returns {Record<string, Float64Array | Float32Array>}
 */
export function unpack(block, buffers) {
  const { count, columns, wide } = block;
  // Copies: a front end may place bytes where no double can begin.
  const [wideBytes, narrowBytes] = buffers.map((one) => bytesOf(one).slice().buffer);
  const [doubles, floats] = [new Float64Array(wideBytes), new Float32Array(narrowBytes)];
  if (doubles.length !== count * wide.length || floats.length !== count * columns.length) {
    throw new Error("A message of the kernel is incomplete.");
  }
  /** @type {Record<string, Float64Array | Float32Array>} */
  const rows = {};
  wide.forEach((name, i) => (rows[name] = doubles.subarray(i * count, (i + 1) * count)));
  columns.forEach((name, i) => (rows[name] = floats.subarray(i * count, (i + 1) * count)));
  return rows;
}
