import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { extractHandoff } from '../../src/context/extract/handoff.ts';
import { type AgentId, HandoffSummary } from '../../src/events/index.ts';
import { agentSays, at, call, personSays, result, someEvents } from '../support/extract-events.ts';

const CODER = 'coder' as AgentId;

describe('a handoff extracted from the log', () => {
  test('contains the goal, what was done, what changed, what is next and what is open', () => {
    const summary = extractHandoff(
      at([
        personSays('Please port the selector to the theme.', ['coder']),
        personSays('Bob, how is the weather?', ['bob']),
        call('edit', { path: 'src/selector.ts' }),
        result('ok', 'done', 'diff-1'),
        agentSays(
          'I ported it. We decided to keep chalk. Next I will fix the tests. Shall I drop the old file?',
        ),
      ]),
      CODER,
    );
    expect(summary).toEqual({
      goal: 'Please port the selector to the theme.',
      done: 'I ported it. We decided to keep chalk. Next I will fix the tests. Shall I drop the old file?',
      state: 'Files modified: src/selector.ts\nWe decided to keep chalk.',
      next: 'Next I will fix the tests.',
      openQuestions: ['[@coder] Shall I drop the old file?'],
      artifacts: ['@artifact/diff-1'],
      why: '',
    });
  });

  test('uses a request to anybody if there is none to this agent, and always has a goal', () => {
    expect(extractHandoff(at([personSays('Bob, do it.', ['bob'])]), CODER).goal).toBe('Bob, do it.');
    expect(extractHandoff([], CODER).goal).toBe('Go on with this conversation.');
  });

  test('is short and valid for any log', () => {
    fc.assert(
      fc.property(someEvents, (events) => {
        const summary = HandoffSummary.parse(extractHandoff(events, CODER));
        for (const field of [
          summary.goal,
          summary.done,
          summary.state,
          summary.next,
          ...summary.openQuestions,
        ]) {
          expect(field.length).toBeLessThanOrEqual(600);
        }
      }),
    );
  });
});
