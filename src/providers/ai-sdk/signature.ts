import type { Reasoning } from '../../events/index.ts';
import type { JSONObject } from '@ai-sdk/provider';
import { parseArgs } from '../call-text.ts';

/** What a vendor wants back with a part of its answer: signatures, encrypted reasoning, ids. By vendor. */
export type PartMetadata = Record<string, JSONObject>;

/** A part of reasoning. `at`: the number of visible parts (text, calls) before it. */
export interface Thought {
  text: string;
  at?: number;
  metadata?: PartMetadata;
}

/** All that a vendor wants back with an answer, which the log keeps as the signature of its reasoning. */
export interface SignedParts {
  thoughts: readonly Thought[];
  text?: PartMetadata;
  /** By the ids of the calls. */
  calls: Readonly<Record<string, PartMetadata>>;
}

const PREFIX = 'ai-sdk:';

/** Null: there is nothing to keep. */
export function signedReasoning(
  parts: SignedParts,
  { provider, model }: Pick<Reasoning, 'provider' | 'model'>,
): Reasoning | null {
  const { thoughts, text, calls } = parts;
  const isSigned = [text ?? {}, ...Object.values(calls)].some(hasMore);
  if (thoughts.length === 0 && !isSigned) return null;
  const said = thoughts.map((thought) => thought.text).filter((each) => each !== '');
  const signature = PREFIX + JSON.stringify(parts);
  return { text: said.join('\n\n'), signature, provider, model };
}

/** The id of an item alone says nothing to a vendor that stores none. */
function hasMore(metadata: PartMetadata): boolean {
  return Object.values(metadata).some((fields) => Object.keys(fields).some((field) => field !== 'itemId'));
}

/** Reasoning without signatures if its own is not ours: a log may come from elsewhere. */
export function signedParts({ text, signature = '' }: Reasoning): SignedParts {
  const written = signature.startsWith(PREFIX) ? signature.slice(PREFIX.length) : '';
  const { thoughts, calls, ...more } = (parseArgs(written) ?? {}) as Partial<SignedParts>;
  if (Array.isArray(thoughts) && calls) return { thoughts: thoughts as Thought[], calls, ...more };
  return { thoughts: text === '' ? [] : [{ text }], calls: {} };
}
