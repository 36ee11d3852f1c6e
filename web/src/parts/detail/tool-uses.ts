import type { Event } from '../../../../src/events/index.ts';

/** One call of a turn with what came of it. */
export interface ToolUse {
  call: string;
  name: string;
  args: string;
  /** Of the step that made it. */
  seq: number;
  result: { seq: number; outcome: string; content: string; artifact: string | null } | null;
}

/** The calls of a turn in the order in which they were made. How long each took is not in the log: what a turn did is
 * written together. Two calls of one step may carry the same id. */
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

/** JSON over several lines where it is JSON; else as it was written. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
