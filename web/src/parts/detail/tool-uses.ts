import type { Event } from '../../../../src/events/index.ts';

/** One tool call of a turn with its result. */
export interface ToolUse {
  call: string;
  name: string;
  args: string;
  /** Seq of the step that made the call. */
  seq: number;
  result: { seq: number; outcome: string; content: string; artifact: string | null } | null;
}

/**
 * The calls of a turn, in order. The log has no durations, because the events of a turn are written together. Two calls of one
 * step may have the same id.
 */
export function toolUsesOf(events: readonly Event[]): ToolUse[] {
  const uses: ToolUse[] = [];
  for (const event of events) {
    if (event.kind === 'step') {
      for (const { id, name, args } of event.body.calls) {
        uses.push({ call: id, name, args, seq: event.seq, result: null });
      }
    } else if (event.kind === 'tool.result') {
      const { call, outcome, content, artifact } = event.body;
      const use = uses.find((each) => each.call === call && each.result === null);
      if (use) use.result = { seq: event.seq, outcome, content, artifact: artifact ?? null };
    }
  }
  return uses;
}

/** JSON is indented; other text stays unchanged. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
