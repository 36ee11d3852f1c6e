import * as z from 'zod';

/** How a model chooses its words. A field that is left out is not sent: the vendor's default applies. */
export const SamplingFields = {
  /** 0: the likeliest word; higher values vary more. */
  temperature: z.number().min(0).max(2).optional(),
  /** Only the likeliest words that together have this probability are considered. */
  topP: z.number().gt(0).max(1).optional(),
  /** Only this many of the likeliest words are considered. */
  topK: z.int().positive().optional(),
  frequencyPenalty: z.number().min(-2).max(2).optional(),
  presencePenalty: z.number().min(-2).max(2).optional(),
  /** Equal requests with one seed get similar answers, as far as the server can. */
  seed: z.int().nonnegative().optional(),
  /** The answer ends before the first of these texts. Summaries are written without them. */
  stop: z.array(z.string().min(1).max(200)).min(1).max(4).optional(),
};
const Sampling = z.object(SamplingFields);
export type Sampling = z.infer<typeof Sampling>;
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
