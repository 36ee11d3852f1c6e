import fc from 'fast-check';
import { expect, test } from 'vitest';
import { person } from '../src/index.ts';
import { ALL_MOVES, type ReadMove, readMove, type Asked } from '../src/move-reply.ts';

const mia = person('mia');
const task = (fields: object) => ({ owner: 'a', by: [], ...fields }) as unknown as Asked['questions'][number];
const question = fc.oneof(
  fc.constant(task({ kind: 'question', text: 'Which?' })),
  fc.constant(task({ kind: 'question', text: 'Which?', choices: ['yes', 'no', ''] })),
);
const approval = fc.constant(task({ kind: 'approval', tool: 'refund' }));
const asked: fc.Arbitrary<Asked> = fc.record({
  questions: fc.array(question, { maxLength: 2 }),
  approvals: fc.array(approval, { maxLength: 2 }),
});

/** Moves, almost moves, and anything. */
const word = fc.constantFrom(
  'say',
  'ANSWER',
  'approve',
  'deny',
  'wait',
  'reached',
  'give up',
  'done',
  'dance',
);
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('yes', 'Well, NO.', ' ', 'x'.repeat(9_000)),
);
const move = fc.record({ move: word, text }, { requiredKeys: [] });
const written = fc.tuple(fc.string(), move, fc.string(), fc.nat()).map(([before, data, after, cut]) => {
  const whole = before + JSON.stringify(data) + after;
  return cut % 2 === 0 ? whole : whole.slice(0, cut % (whole.length + 1));
});
const reply = fc.oneof(move, written, fc.string({ unit: 'binary' }), fc.jsonValue());

test('any reply is a move that the person may make, an end, or a problem that is named', () => {
  fc.assert(
    fc.property(reply, asked, (data, open) => {
      expect(problemOf(readMove(data, mia, open, [...ALL_MOVES, 'leave']), open)).toBeNull();
    }),
    { numRuns: 2_000 },
  );
});

function problemOf(read: ReadMove, { questions, approvals }: Asked): string | null {
  if (read.kind === 'none') return read.problem === '' ? 'no problem' : null;
  if (read.kind === 'end') return ['reached', 'gave up'].includes(read.outcome.kind) ? null : 'another end';
  const made = read.move;
  if (made.move === 'wait') return null;
  if (made.move === 'approve' || made.move === 'deny')
    return approvals.length > 0 ? null : 'nothing to decide';
  if (made.move !== 'say' && made.move !== 'answer') return 'another move';
  if (made.content.trim() === '' || made.content.length > 2_000) return 'no words, or too many';
  if (!made.content.isWellFormed()) return 'broken words';
  if (made.move === 'say') return null;
  const { choices } = questions[0] ?? {};
  if (questions.length === 0) return 'nothing to answer';
  return choices === undefined || choices.includes(made.content) ? null : 'no choice';
}
