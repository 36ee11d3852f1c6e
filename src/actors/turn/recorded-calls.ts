import type { ToolCall, ToolOutcome } from '../../events/index.ts';

/** The result of a call that is not made. */
interface RecordedResult {
  outcome: ToolOutcome;
  text: string;
  /** The call ended the original turn, and ends this one. */
  ends: boolean;
}

/** What the calls of a repeated turn are told. Null: the call is made. */
export type RecordedCalls = (call: ToolCall) => Promise<RecordedResult | null>;
