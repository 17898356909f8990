/**
 * From packed bytes to typed arrays; the other side of `encode.py`.
 *
 * @typedef {{name: string, label: string, colour: string, hatched: boolean, idle: boolean,
 *   waits: string}} Category
 * @typedef {{scene: Scene, first: number, last: number, track: Track, depth: number,
 *   sums: Sums | null}} Row  Events `first` to `last` (excluded): sorted, never overlapping.
 * @typedef {{kinds: number[], total: Float64Array}} Sums
 * @typedef {{kind: string, name: string, group: string, rank: number, device: number, note: string,
 *   first: number, last: number, rows: Row[], place: number}} Track
 * @typedef {{name: string, group: string, rank: number, unit: string, at: Float64Array,
 *   value: Float64Array, high: number}} Counter
 * @typedef {object} Scene
 * @property {string} title
 * @property {string} headline  The finding, in a sentence.
 * @property {number} from  Start of everything, in ns on the clock of the first rank's trace.
 * @property {number} to
 * @property {string[]} ranks
 * @property {string[]} notes
 * @property {string[]} names
 * @property {string[]} shapes
 * @property {Category[]} categories
 * @property {Track[]} tracks
 * @property {Counter[]} counters
 * @property {number} length
 * @property {Float64Array} start
 * @property {Float64Array} end
 * @property {Uint32Array} label
 * @property {Uint32Array} nameOf  By label.
 * @property {Uint8Array} kindOf  By label: its category.
 * @property {Int32Array} link  What an event belongs to, or -1.
 * @property {Int32Array} of  The host record that explains a gap, or -1.
 * @property {Uint32Array | null} shape  Into `shapes`, one more; 0 for none.
 * @property {Uint32Array | null} count  How many events each stands for.
 * @property {Float64Array | null} idle  How much of a merged event is no work.
 * @property {number[] | null} totals  Recorded events by label, where fewer are drawn.
 */

/** @param {Uint8Array} packed @returns {Promise<Uint8Array>} */
export async function gunzip(packed) {
  const stream = new Blob([/** @type {any} */ (packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {string} text base64 @returns {Uint8Array} */
export function fromBase64(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * Numbers that lie shuffled: all first bytes, then all second bytes, little end first.
 * @template {Float64Array | Uint32Array} Out
 * @param {Uint8Array} bytes @param {number} at @param {number} width @param {Out} out @returns {Out}
 */
export function unshuffle(bytes, at, width, out) {
  const length = out.length;
  for (let place = 0, scale = 1; place < width; place += 1, scale *= 256) {
    const from = at + place * length;
    if (place === 0) for (let i = 0; i < length; i += 1) out[i] = bytes[from + i];
    else for (let i = 0; i < length; i += 1) out[i] += bytes[from + i] * scale;
  }
  return out;
}

/** Differences back to references; 0 is none. @param {Float64Array} coded @returns {Int32Array} */
export function unzigzag(coded) {
  const out = new Int32Array(coded.length);
  let last = 0;
  for (let i = 0; i < coded.length; i += 1) {
    if (coded[i] === 0) {
      out[i] = -1;
      continue;
    }
    const value = coded[i] - 1;
    last += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    out[i] = last;
  }
  return out;
}

/** @param {Uint8Array} bytes decompressed @returns {Scene} */
export function decode(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== "WBT1") throw new Error("no timeline data");
  const size = view.getUint32(4, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  const places = new Map();
  let at = 8 + size;
  for (const column of head.columns) {
    places.set(column.name, { at, width: column.width, length: column.length });
    at += column.width * column.length;
  }
  /** @template {Float64Array | Uint32Array} T @param {string} name
   * @param {new (length: number) => T} Kind @returns {T | null} */
  const read = (name, Kind) => {
    const place = places.get(name);
    return place ? unshuffle(bytes, place.at, place.width, new Kind(place.length)) : null;
  };
  const start = /** @type {Float64Array} */ (read("start", Float64Array));
  const end = /** @type {Float64Array} */ (read("dur", Float64Array));
  const count = read("count", Uint32Array);
  if (count) for (let i = 0; i < count.length; i += 1) count[i] += 1;
  /** @type {Scene} */
  const scene = {
    title: head.title,
    headline: head.headline,
    from: head.start,
    to: Math.max(head.end, head.start + 1),
    ranks: head.ranks,
    notes: head.notes,
    names: head.names,
    shapes: head.shapes ?? [],
    categories: head.categories,
    tracks: [],
    counters: head.counters.map((/** @type {any} */ one) => counterOf(one, head.start)),
    length: start.length,
    start,
    end,
    label: /** @type {Uint32Array} */ (read("label", Uint32Array)),
    nameOf: Uint32Array.from({ length: head.labels.length / 2 }, (_, i) => head.labels[2 * i]),
    kindOf: Uint8Array.from({ length: head.labels.length / 2 }, (_, i) => head.labels[2 * i + 1]),
    link: unzigzag(/** @type {Float64Array} */ (read("link", Float64Array))),
    of: unzigzag(/** @type {Float64Array} */ (read("of", Float64Array))),
    shape: read("shape", Uint32Array),
    count,
    idle: read("idle", Float64Array),
    totals: head.totals,
  };
  let first = 0;
  head.tracks.forEach((/** @type {any} */ told, /** @type {number} */ place) => {
    /** @type {Track} */
    const track = { ...told, first, last: first, rows: [], place };
    told.rows.forEach((/** @type {number} */ length, /** @type {number} */ depth) => {
      const last = track.last + length;
      placeRow(scene, track.last, last);
      track.rows.push({ scene, first: track.last, last, track, depth, sums: null });
      track.last = last;
    });
    first = track.last;
    scene.tracks.push(track);
  });
  return scene;
}

/** Distances from the end before, and lengths, become starts and ends.
 * @param {Scene} scene @param {number} first @param {number} last */
function placeRow(scene, first, last) {
  const { start, end } = scene;
  let before = scene.from;
  for (let i = first; i < last; i += 1) {
    start[i] += before;
    end[i] += start[i];
    before = end[i];
  }
}

/** @param {any} told @param {number} from @returns {Counter} */
function counterOf(told, from) {
  let at = from;
  return {
    ...told,
    at: Float64Array.from(told.at, (step) => (at += step * 1000)),
    value: Float64Array.from(told.value),
    high: told.value.reduce((/** @type {number} */ a, /** @type {number} */ b) => Math.max(a, b), 0),
  };
}
