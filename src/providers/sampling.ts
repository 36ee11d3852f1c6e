import * as z from 'zod';

export const SamplingFields = {
  temperature: z.number().min(0).max(2).optional(),
  topP: z.number().gt(0).max(1).optional(),
  topK: z.int().positive().optional(),
  frequencyPenalty: z.number().min(-2).max(2).optional(),
  presencePenalty: z.number().min(-2).max(2).optional(),
  seed: z.int().nonnegative().optional(),
  stop: z.array(z.string().min(1).max(200)).min(1).max(4).optional(),
};

/** How a model chooses its words. A field that is left out is not sent: the vendor's default applies. */
export interface Sampling {
  /** 0: the likeliest word; higher values, up to 2, vary more. */
  temperature?: number | undefined;
  /** Only the likeliest words that together have this probability are considered, above 0 to 1. */
  topP?: number | undefined;
  /** Only this many of the likeliest words are considered. */
  topK?: number | undefined;
  /** Makes words less likely the more often they were used; -2 to 2. */
  frequencyPenalty?: number | undefined;
  /** Makes words that were used less likely; -2 to 2. */
  presencePenalty?: number | undefined;
  /** Equal requests with one seed get similar answers, as far as the server can. */
  seed?: number | undefined;
  /** The answer ends before the first of these texts, 1 to 4. Summaries are written without them. */
  stop?: readonly string[] | undefined;
}
export type SamplingField = keyof Sampling;
export const SAMPLING_FIELDS = Object.keys(SamplingFields) as SamplingField[];

/** The sampling settings among the settings of an agent. */
export function samplingOf(settings: Sampling): Sampling {
  const given = SAMPLING_FIELDS.filter((field) => settings[field] !== undefined);
  return Object.fromEntries(given.map((field) => [field, settings[field]]));
}

/** An object without the fields that are undefined, for the body of a request. */
export function givenOf<T extends object>(body: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as never;
}
