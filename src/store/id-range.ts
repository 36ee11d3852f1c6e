/** Ids with `from` <= id < `to`, by code units. */
export interface IdRange {
  /** The first id. */
  from: string;
  /** The last id. */
  to: string;
}
