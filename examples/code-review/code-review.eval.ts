import * as z from 'zod';
import { expect } from 'vitest';
import {
  answered,
  called,
  delegated,
  describeConversation,
  person,
  said,
} from '../../packages/evals/src/index.ts'; // from '@troupe/evals'
import { troupe, Verdict } from './agents.ts';
import { DIFF, lead, performance, security, style } from './scripts.ts';

const ana = person('ana');
const diff = { name: 'change.diff', mediaType: 'text/x-diff', data: Buffer.from(DIFF) };
const ASKED = ana.says('Can this be merged?', { attachments: [diff] });
const models = { lead, security, performance, style };
const REVIEWERS = ['security', 'performance', 'style'] as const;

const AllDone = z.object({
  items: z.array(z.object({ text: z.string(), status: z.literal('done') })).length(5),
});

export const evals = describeConversation(
  troupe,
  (scenario) => {
    scenario('a change with an SQL injection, a query in a loop and a bad name', ASKED, {
      'the lead is woken, with the diff': (run) => {
        expect(run).toHaveWoken('lead', { by: 'ana' });
        expect(run).toHaveBeenTold('lead', "WHERE customer = '${customer}'");
      },
      'three reviewers are given the whole diff in one turn': (run) => {
        for (const reviewer of REVIEWERS)
          expect(run).toHaveDelegated('lead', reviewer, DIFF, { times: 1, turn: 1 });
      },
      'the lead knows that a reviewer sees its task alone': (run) =>
        expect(run).toHaveBeenTold('lead', 'They see their task alone: give each the whole diff in it.'),
      'the lead knows that it follows up once, with whom': (run) =>
        expect(run).toHaveBeenTold('lead', /follow up once with whoever has found the most serious thing/),
      'the lead knows who reviews what': (run) => {
        expect(run).toHaveBeenTold('lead', /@security: .*Reviews changes for holes that somebody could use/);
        expect(run).toHaveBeenTold('lead', /@performance: .*Reviews changes for what they cost at run time/);
      },
      'each reviewer knows its own field, and no other': (run) => {
        for (const reviewer of REVIEWERS) {
          expect(run).toHaveBeenTold(reviewer, `Your field is ${reviewer}.`);
          for (const other of REVIEWERS)
            if (other !== reviewer) expect(run).not.toHaveBeenTold(reviewer, `Your field is ${other}.`);
        }
      },
      'each reviewer knows that a finding has its line and a fix': (run) => {
        for (const reviewer of REVIEWERS)
          expect(run).toHaveBeenTold(reviewer, /each finding with the line it is about and a\s+fix/);
      },
      'a reviewer asks nobody else': (run) =>
        expect(run).not.toHaveBeenTold(/^(?!lead)/, /^(?:delegate|ask): /),
      'the lead follows up once, with security, after all have reported': (run) => {
        expect(run).toHaveHappenedInOrder([
          delegated('lead', 'security', 'Review this diff'),
          answered('security', 'lead', 'SQL injection'),
          called('lead', 'follow_up', { text: /placeholder/ }),
          answered('security', 'lead', 'A placeholder is enough'),
        ]);
        expect(run).toHaveHappenedInOrder([
          answered('style', 'lead', '`Rows` is a variable'),
          called('lead', 'follow_up'),
        ]);
        expect(run).toHaveCalled('lead', 'follow_up', undefined, { outcome: 'done', times: 1 });
      },
      'there is one verdict: changes are requested, with a finding of each field': (run) => {
        const findings = REVIEWERS.map((area) => expect.objectContaining({ area }) as unknown);
        expect(run).toHaveSaid('lead', Verdict.extend({ verdict: z.literal('request_changes') }), {
          times: 1,
        });
        expect(run).toHaveAnswered('lead', 'ana', /"findings"/, { times: 1 });
        expect(run.events.at(-2)?.body).toMatchObject({ data: { findings } });
      },
      'the list of the lead has no open items when it answers': (run) =>
        expect(run).toHaveHappenedInOrder([
          called('lead', 'todo', AllDone, { outcome: 'done' }),
          said('lead', Verdict),
        ]),
      'a review ends after ten minutes at most': (run) => {
        for (const { kind, body, at } of run.events)
          if (kind === 'delegation.opened') expect(body.deadline).toBe(at + 600_000);
      },
      'it takes seven turns': (run) => expect(run).toHaveTakenAtMost({ turns: 7, steps: 10 }),
    });

    scenario(
      'a reviewer that fails',
      ASKED,
      {
        'the two others are heard, and there is a verdict': (run) => {
          expect(run).toHaveFailed('style', 'provider_refused');
          expect(run).toHaveAnswered('security', 'lead', 'SQL injection');
          expect(run).toHaveAnswered('performance', 'lead', '101 queries');
          expect(run).toHaveSaid('lead', Verdict);
        },
      },
      { models: { ...models, style: { rules: [{ fail: { code: 'provider_refused' } }] } }, sound: false },
    );
  },
  // The script of the lead knows its tasks by the name of the conversation.
  { name: 'code review', models, conversation: 'review' },
);
