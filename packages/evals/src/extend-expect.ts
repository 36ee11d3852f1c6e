import { expect } from 'vitest';
import type { ConversationRun } from './conversation-run.ts';
import { MATCHERS } from './matchers.ts';

type Judge = (run: ConversationRun, ...args: unknown[]) => { pass: boolean; message: () => string };

/** Adds the matchers to `expect`. Does nothing outside of vitest, where the rest of `@troupe/evals` still works. */
export function extendExpect(): void {
  if (process.env['VITEST'] === undefined) return;
  const matchers = Object.entries(MATCHERS as Record<string, unknown>).map(
    ([name, judge]) => [name, ofRuns(name, judge as Judge)] as const,
  );
  expect.extend(Object.fromEntries(matchers));
}

function ofRuns(name: string, judge: Judge) {
  return (run: unknown, ...args: unknown[]) => {
    if (isRun(run)) return judge(run, ...args);
    throw new TypeError(`${name} takes a run, as playConversation and scenarios give it`);
  };
}

function isRun(value: unknown): value is ConversationRun {
  const { events, turns } = Object(value) as Partial<ConversationRun>;
  return Array.isArray(events) && Array.isArray(turns);
}
