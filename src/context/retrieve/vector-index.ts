import type { Hit } from './ranking.ts';

/** Vectors of events, compared one by one. That is fast enough for the thousands in a conversation. */
export interface VectorIndex {
  readonly size: number;
  has(seq: number): boolean;
  /** False if the vector cannot be compared with the others: another length, zero, or not finite. */
  add(seq: number, vector: ArrayLike<number>): boolean;
  /** By cosine, best first, ties by seq. `allows` filters events. */
  search(query: ArrayLike<number>, limit: number, allows?: (seq: number) => boolean): Hit[];
}

export function createVectorIndex(): VectorIndex {
  /** Unit vectors, so that the dot product is the cosine. */
  const vectors = new Map<number, Float32Array>();
  let dimensions: number | null = null;

  return {
    get size() {
      return vectors.size;
    },
    has: (seq) => vectors.has(seq),
    add(seq, vector) {
      const unit = unitOf(vector);
      if (!unit || (dimensions !== null && unit.length !== dimensions)) return false;
      dimensions = unit.length;
      vectors.set(seq, unit);
      return true;
    },
    search(query, limit, allows = () => true) {
      const unit = unitOf(query);
      if (!unit || unit.length !== dimensions) return [];
      return [...vectors]
        .filter(([seq]) => allows(seq))
        .map(([seq, vector]) => ({ seq, score: product(unit, vector) }))
        .sort((one, other) => other.score - one.score || one.seq - other.seq)
        .slice(0, limit);
    },
  };
}

function unitOf(vector: ArrayLike<number>): Float32Array | null {
  let squares = 0;
  for (let index = 0; index < vector.length; index += 1) squares += (vector[index] ?? 0) ** 2;
  const length = Math.sqrt(squares);
  return length > 0 && Number.isFinite(length) ? Float32Array.from(vector, (value) => value / length) : null;
}

function product(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index += 1) sum += (one[index] ?? 0) * (other[index] ?? 0);
  return sum;
}
