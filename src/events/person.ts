import * as z from 'zod';

const ONE_LINE = /^[^\p{C}\p{Zl}\p{Zp}]*$/u;

function line(most: number): z.ZodString {
  return (
    z
      .string()
      .trim()
      .min(1)
      .max(most)
      .refine((text) => ONE_LINE.test(text), 'must be one line without control characters')
      // The pattern in documents, in syntax that every validator knows. It accepts more: the check trims spaces first.
      .meta({ pattern: '^[^\\x00-\\x08\\x0e-\\x1f\\x7f-\\x9f]*$' })
  );
}

/** What agents are told of a person beside the name in the person's messages. Every field is optional. */
export const PersonProfile = z.strictObject({
  /** How agents call the person. Default: the name in the messages. */
  name: line(200).optional(),
  /** IANA name, such as Europe/Berlin: agents are also told the time there. */
  timeZone: z.string().max(64).refine(isTimeZone, 'must be a time zone such as Europe/Berlin').optional(),
  /** What the person asks of every answer, such as a language or a length. */
  preferences: line(1_000).optional(),
});
export type PersonProfile = z.infer<typeof PersonProfile>;

/** Id of a person, as in the author of a message. */
export const PersonId = z.string().min(1).max(128);

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    // Thrown for unknown names.
    return false;
  }
}
