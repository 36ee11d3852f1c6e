/** The marks that a provider has given of the answer to a step. */
export interface BegunAnswer {
  /** Of the journal, without the number of the mark. */
  key: string;
  /** Number of marks. */
  count: number;
  last: string | null;
}
