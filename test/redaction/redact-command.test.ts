import { expect, test } from 'vitest';
import { createRedaction, type TextPlace } from '../../src/events/redaction.ts';
import { type Author, Command, COMMANDS } from '../../src/events/index.ts';
import { redactCommand } from '../../src/library/facade/execute-command.ts';

const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const IN = { conversation: 'SECRET' };
const OF = { ...IN, agent: 'SECRET' };
const TEXT = 'a SECRET';

/** Every command with all its fields, the kind of event that stores its texts, and the names of the text fields. */
const COMMANDS_IN_FULL: readonly [object, string, readonly string[]][] = [
  [{ command: 'abort', turn: 'SECRET:echo:1' }, '', []],
  [{ command: 'pause', ...OF, agent: 'secret' }, '', []],
  [{ command: 'resume', ...OF, agent: 'secret' }, '', []],
  [{ command: 'mode', ...IN, mode: 'chat', run: 'SECRET' }, '', []],
  [
    { command: 'directive', ...IN, run: 'SECRET', directive: TEXT, brief: TEXT, status: 'active' },
    'run.directive',
    ['directive', 'brief'],
  ],
  [
    { command: 'phase', ...IN, phase: TEXT, instructions: TEXT, summarise: true },
    'phase.changed',
    ['phase', 'instructions'],
  ],
  [
    { command: 'run', ...IN, workflow: 'SECRET', run: 'secret', directive: TEXT, step: 'SECRET' },
    'run.directive',
    ['directive'],
  ],
  [{ command: 'answer', ...IN, question: 'SECRET', content: TEXT }, 'question.answered', ['content']],
  [
    { command: 'decide', ...IN, request: 'SECRET', approved: true, note: TEXT, argsHash: 'SECRET' },
    'approval.decided',
    ['note'],
  ],
  [{ command: 'cancelTask', ...IN, task: 'SECRET', reason: TEXT }, 'delegation.ended', ['reason']],
  [{ command: 'retry', turn: 'SECRET:echo:1' }, '', []],
  [{ command: 'fork', turn: 'SECRET:echo:1', conversation: 'SECRET', seq: 1, as: 'SECRET' }, '', []],
  [{ command: 'rerun', turn: 'SECRET:echo:1', tools: 'run', as: 'SECRET' }, '', []],
  [{ command: 'join', ...IN, agent: 'secret', policy: 'full' }, '', []],
  [{ command: 'leave', ...IN, agent: 'secret', reason: TEXT }, 'membership.changed', ['reason']],
  [{ command: 'block', ...IN, agent: 'secret', reason: TEXT }, 'membership.changed', ['reason']],
  [{ command: 'unblock', ...IN, agent: 'secret' }, '', []],
  [{ command: 'retire', ...IN, agent: 'secret' }, '', []],
  [{ command: 'reinstate', ...IN, agent: 'secret' }, '', []],
  [{ command: 'compact', ...IN, agent: 'secret' }, '', []],
  [{ command: 'recall', ...IN, agent: 'secret' }, '', []],
  [{ command: 'spawn', ...IN, template: 'secret' }, '', []],
  [{ command: 'dispatch', ...IN, event: 'SECRET', note: TEXT }, 'injection', ['note']],
  [{ command: 'archive', ...IN, reason: TEXT }, 'command', ['reason']],
  [{ command: 'reopen', ...IN, reason: TEXT }, 'command', ['reason']],
];

test('the list has every command', () => {
  const names = COMMANDS_IN_FULL.map(([command]) => Command.parse(command).command);
  expect(names.toSorted()).toEqual([...COMMANDS].toSorted());
});

test.each(COMMANDS_IN_FULL)(
  'of a command its texts are redacted, and nothing else: %o',
  (given, kind, texts) => {
    const places: TextPlace[] = [];
    const redaction = createRedaction(
      (text, where) => {
        places.push(where);
        return text.replaceAll('SECRET', '[gone]');
      },
      () => {},
    );
    const redacted = redactCommand(redaction, Command.parse(given), ANA);
    expect(redacted).toEqual({ ...given, ...Object.fromEntries(texts.map((name) => [name, 'a [gone]'])) });
    expect(places).toEqual(texts.map(() => ({ kind, author: ANA })));
  },
);

test('of the change of a turn that is run again, the words are redacted', () => {
  const redaction = createRedaction(
    (text) => text.toUpperCase(),
    () => {},
  );
  const turn = 'c:echo:1';
  const of = (change: object) =>
    redactCommand(redaction, Command.parse({ command: 'rerun', turn, change }), ANA);
  for (const change of [
    { kind: 'message', content: 'x' },
    { kind: 'instructions', text: 'x' },
    { kind: 'toolResult', call: 'c', result: 'x' },
  ])
    expect(of(change)).toEqual({
      command: 'rerun',
      turn,
      change: {
        ...change,
        [change.kind === 'message' ? 'content' : change.kind === 'toolResult' ? 'result' : 'text']: 'X',
      },
    });
  const model = { kind: 'model', model: 'm', provider: 'p' };
  expect(of(model)).toEqual({ command: 'rerun', turn, change: model });
});
