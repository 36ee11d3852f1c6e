import type { PromptDiff } from '../../../../src/library/troupe.ts';
import { type LaidPrompt, messageTokens, scaleOf, slicesOf } from './prompt-layout.ts';

/** A reason why the size differs from the previous prompt's: an event, or a frozen layer. */
export interface Growth {
  /** Events shown in the message; empty when none is known. */
  seqs: readonly number[];
  /** The layer, if the reason is not a message. */
  layer: string | null;
  role: string | null;
  /** Messages without known events, of one role and all added or all removed, are one reason. */
  count: number;
  tokens: number;
}

/** Additions and removals, largest first. Their tokens are estimated from characters: the record has token sums only for layers. */
export function growthOf(diff: PromptDiff, prompt: LaidPrompt): Growth[] {
  const sizes = messageTokens(prompt);
  const chars = prompt.messages.reduce(
    (sum, { role, content }) => sum + (role === 'system' ? 0 : content.length),
    0,
  );
  const perChar = chars === 0 ? 0 : sizes.reduce((sum, size) => sum + size, 0) / chars;
  const growth = diff.messages.changes.flatMap(({ a, b, role, hunks }): Growth[] => {
    if (role === 'system') return [];
    const message = b === null ? undefined : prompt.messages[b];
    const tokens =
      a === null && b !== null
        ? (sizes[b] ?? 0)
        : hunks.reduce((sum, { lines }) => sum + charsAdded(lines), 0) * perChar;
    return [{ seqs: message?.seqs ?? [], layer: null, role, count: 1, tokens }];
  });
  const frozen = new Set(slicesOf(prompt).map(({ name }) => name));
  for (const { name, tokens, change } of diff.layers) {
    const isFrozen = ['rules', 'persona', 'tools', 'environment'].includes(name);
    if (isFrozen && change !== 'equal' && (frozen.has(name as never) || tokens.b === 0)) {
      growth.push({ seqs: [], layer: name, role: null, count: 1, tokens: tokens.delta * scaleOf(prompt) });
    }
  }
  return merged(growth.filter(({ tokens }) => Math.round(tokens) !== 0)).toSorted(
    (one, other) => Math.abs(other.tokens) - Math.abs(one.tokens),
  );
}

function merged(growth: readonly Growth[]): Growth[] {
  const groups = Map.groupBy(growth, ({ seqs, layer, role, tokens }) =>
    JSON.stringify([seqs, layer, role, tokens < 0]),
  );
  return [...groups.values()].map((own) => ({
    ...(own[0] as Growth),
    count: own.length,
    tokens: own.reduce((sum, { tokens }) => sum + tokens, 0),
  }));
}

function charsAdded(lines: readonly string[]): number {
  return lines.reduce((sum, line) => {
    if (line.startsWith('+')) return sum + line.length;
    return line.startsWith('-') ? sum - line.length : sum;
  }, 0);
}
