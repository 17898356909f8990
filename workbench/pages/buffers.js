/** Bytes of the kernel, whatever a front end hands over. */

/** Accepts what hosts hand over: DataView (JupyterLab), Uint8Array (Colab), ArrayBuffer.
 * @param {DataView | Uint8Array | ArrayBuffer} buffer @returns {Uint8Array} */
export function bytesOf(buffer) {
  if (buffer instanceof ArrayBuffer) return new Uint8Array(buffer);
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
