import { textOfBytes } from '../../measures.ts';

/** The agent of the load: some 30,000 tokens of instructions, and dozens of tools. */
export const INSTRUCTIONS = textOfBytes(120_000, 'policy');
const TOOLS = 36;
const RESULT_BYTES = 8_000;
/** Turns that are measured, behind one that is not. */
export const TURNS = 5;

export const TOOL_NAMES = Array.from({ length: TOOLS }, (_, index) => `tool_${index}`);
export const DESCRIPTION = textOfBytes(
  300,
  'Looks up what is known of an order, a customer, a parcel or an invoice',
);
export const FIELDS = ['order', 'customer', 'parcel', 'invoice', 'since', 'until'] as const;

export function resultOf(step: number): string {
  return textOfBytes(RESULT_BYTES, `result ${step}`);
}

/** Times between the model calls of one turn, by the number of the call before. */
export function gapClock() {
  const gaps: number[][] = [];
  let ended = Number.NaN;
  let measuring = false;
  return {
    /** From here on they count. */
    measure: () => void (measuring = true),
    /** `call` of the turn, from 0. */
    starts(call: number) {
      if (measuring && call > 0) (gaps[call - 1] ??= []).push(performance.now() - ended);
    },
    ends: () => void (ended = performance.now()),
    figures: () => ({ gapMs: median(gaps.flat()), lastGapMs: median(gaps.at(-1) ?? []) }),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
