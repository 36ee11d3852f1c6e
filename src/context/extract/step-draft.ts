import type { Event, EventOf, ToolResultBody } from '../../events/index.ts';
import { callLine, excerptOf } from './call-lines.ts';
import { type Draft, type Level, shortened } from './candidate.ts';

type Count = (text: string) => number;

/** Of one step's results, all together. */
const EXCERPT_TOKENS = 160;

type Group = readonly (ToolResultBody | null)[];
export type Results = ReadonlyMap<number, Group>;

/** The results of each step in the order of its calls. Ids are reused from step to step, so a step owns what follows it. */
export function resultsOf(events: readonly Event[]): Results {
  const groups = new Map<number, (ToolResultBody | null)[]>();
  const open = new Map<string, EventOf<'step'>>();
  for (const event of events) {
    if (event.kind === 'step') {
      groups.set(
        event.seq,
        event.body.calls.map(() => null),
      );
      open.set(event.author.id, event);
    } else if (event.kind === 'tool.result') {
      const step = open.get(event.author.id);
      const group = step && groups.get(step.seq);
      const at = step
        ? step.body.calls.findIndex(({ id }, index) => id === event.body.call && group?.[index] === null)
        : -1;
      if (group && at >= 0) group[at] = event.body;
    }
  }
  return groups;
}

/** A step is quoted with a line per call and, where that says something, what came of it. */
export function draftOfStep(event: EventOf<'step'>, speaker: string, group: Group, count: Count): Draft {
  const { content, calls } = event.body;
  const outputs = calls.map((call, index) => ({ call, result: group[index] ?? null }));
  const lines = outputs.map(({ call, result }) => callLine(call, result));
  const part = Math.floor(EXCERPT_TOKENS / calls.length);
  const text = (level: Level): string => {
    const words = shortened(content, count)(level);
    const shown = outputs.flatMap(({ result }, index) => {
      const output = result?.content ?? '';
      const excerpt =
        level === 'whole'
          ? output.trim()
          : level === 'preview' && result
            ? excerptOf(result, part, count)
            : '';
      return [lines[index] ?? '', ...(excerpt === '' ? [] : [excerpt])];
    });
    return [...(words.trim() === '' ? [] : [words]), ...shown].join('\n');
  };
  const results = outputs.map(({ result }) => result?.content ?? '').join('\n');
  const judged = { text: content, calls: lines.join('\n'), results, kept: false };
  return { seq: event.seq, speaker, role: 'work', isCut: false, judged, text };
}
