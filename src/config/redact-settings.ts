import * as z from 'zod';
import type { RedactText } from '../actors/log/redaction.ts';

/** The `redact` of a definition: only code can give one. */
export const RedactSetting = z.custom<RedactText>(
  (value) => typeof value === 'function',
  'redact is a function (text, { kind, author }) => text, in an agents file that is code; see redactSecrets',
);

export type { RedactText };
