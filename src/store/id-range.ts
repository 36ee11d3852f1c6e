/** Ids with `from` <= id < `to`, by code units. */
export interface IdRange {
  /** Lower bound, included. */
  from: string;
  /** Upper bound, not included. */
  to: string;
}
