import * as z from 'zod';
import type { PromptMessage } from '../../events/index.ts';

/**
 * Vendors' tokenizers differ from ours by what they count: least in prose, most in code and in calls, which they wrap in
 * a frame of their own.
 */
export const KINDS = ['prose', 'code', 'calls', 'system'] as const;
export type Kind = (typeof KINDS)[number];

/** Tokens of a request as we count them, by kind. */
export const KindTokens = z.record(z.enum(KINDS), z.number().nonnegative());
export type KindTokens = z.infer<typeof KindTokens>;

export const NO_TOKENS: KindTokens = { prose: 0, code: 0, calls: 0, system: 0 };

/** One kind per message, by its role alone: what tools return is code more often than not. */
export function kindOf(message: PromptMessage): Kind {
  switch (message.role) {
    case 'system':
      return 'system';
    case 'tool':
      return 'code';
    case 'assistant':
      return message.calls ? 'calls' : 'prose';
    case 'user':
      return 'prose';
  }
}

/** `system`: tokens of the baseline, which stands before the messages. */
export function kindTokens(
  counted: Iterable<{ message: PromptMessage; tokens: number }>,
  system = 0,
): KindTokens {
  const sums = { ...NO_TOKENS, system };
  for (const { message, tokens } of counted) sums[kindOf(message)] += tokens;
  return sums;
}

export function sumOf(kinds: KindTokens): number {
  return KINDS.reduce((sum, kind) => sum + kinds[kind], 0);
}
