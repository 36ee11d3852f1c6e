import { expect, test } from 'vitest';
import { troupe as codeReview } from '../../../examples/code-review/agents.ts';
import * as reviewers from '../../../examples/code-review/scripts.ts';
import { troupe as researchDesk } from '../../../examples/research-desk/agents.ts';
import * as editors from '../../../examples/research-desk/scripts.ts';
import { troupe as supportTriage } from '../../../examples/support-triage/agents.ts';
import * as support from '../../../examples/support-triage/scripts.ts';
import type { TroupeInput } from '../../../src/library/config/agents-file.ts';
import {
  type ConversationRun,
  minutesPass,
  person,
  playConversation,
  recordedTools,
  type UserMove,
} from '../src/index.ts';
import { recordTest } from '../src/record-test.ts';
import { Recording } from '../src/recording.ts';

const { DIFF, ...review } = reviewers;
const ana = person('ana');
const dana = person('dana');
const mia = person('mia');
const diff = { name: 'change.diff', mediaType: 'text/x-diff', data: Buffer.from(DIFF) };

/** Each example with its people, and the last text that they heard. */
const EXAMPLES: { name: string; company: TroupeInput; models: object; people: UserMove[]; heard: string }[] =
  [
    {
      name: 'code-review',
      company: codeReview,
      models: review,
      people: [ana.says('Can this be merged?', { attachments: [diff] })],
      heard: 'request_changes',
    },
    {
      name: 'research-desk',
      company: researchDesk,
      models: editors,
      people: [
        ana.says('Does the night tram pay? I would like an article on it.'),
        ana.answers('those who ride at night'),
        ana.approves('publish'),
      ],
      heard: 'It is out.',
    },
    {
      name: 'support-triage',
      company: supportTriage,
      models: support,
      people: [
        mia.says('My subscription was renewed, and it costs more than you promised.'),
        minutesPass(31),
        dana.answers('refund 90 euros'),
      ],
      heard: 'the 90 euros are on their way back to you',
    },
  ];

/** The same company, whose models cannot be reached, and whose tools must not run. */
function offline(company: TroupeInput): TroupeInput {
  const model = { provider: 'anthropic', model: 'claude-sonnet-5', script: undefined };
  const agents = company.agents.map((agent) => ({ ...agent, ...model }));
  const tools = company.tools?.map((tool) => ({
    ...tool,
    run() {
      throw new Error('the real tool has run');
    },
  }));
  return { ...company, agents, ...(tools && { tools }) } as TroupeInput;
}

const wordsOf = ({ events }: ConversationRun) =>
  events
    .flatMap(({ kind, author, body }) => (kind === 'message' ? [`${author.id}: ${body.content}`] : []))
    .sort();

test.each(EXAMPLES)(
  'a conversation of $name is played again offline, and a change of instructions is named',
  async ({ company, models, people, heard }) => {
    const tools = { publish: 'published as an article' };
    const isEditor = company === researchDesk;
    const options = { models, conversation: 'told', ...(isEditor && { tools }) } as object;
    const stored = await playConversation(company, people, options);
    const made = await recordTest(stored, offline(company));
    const recording = Recording.parse(JSON.parse(JSON.stringify(made.recording)));
    const again = await playConversation(offline(company), made.moves, { recording });
    expect(wordsOf(again)).toEqual(wordsOf(stored));
    expect(wordsOf(again).join('\n')).toContain(heard);
    expect(wordsOf(made.run)).toEqual(wordsOf(again));

    const [first, ...others] = offline(company).agents;
    const told = { ...first, instructions: 'Be brief.' };
    const changed = { ...offline(company), agents: [told, ...others] } as TroupeInput;
    await expect(playConversation(changed, made.moves, { recording })).rejects.toThrow(
      `the instructions of @${first?.id} have changed since the recording (told:${first?.id}:1)`,
    );
  },
);

test('a call that was not recorded ends the run, and the nearest recorded call is named', async () => {
  const [, desk] = EXAMPLES;
  const options = { models: desk?.models as typeof editors, tools: { publish: 'published as an article' } };
  const { recording } = await recordTest(
    await playConversation(researchDesk, desk?.people ?? [], options),
    researchDesk,
  );
  const curious = {
    rules: [
      { when: { step: 1 }, calls: [{ name: 'read_file', args: { name: 'wages.csv' } }] },
      { reply: 'So.' },
    ],
  };
  const play = playConversation(researchDesk, ana.says('What do they earn?', { to: ['figures'] }), {
    models: { '*': curious },
    tools: recordedTools(recording),
  });
  await expect(play).rejects.toThrow(
    // Two calls are equally near, and which of them was made first depends on timing.
    /not in the recording: read_file \{"name":"wages\.csv"\}; the nearest call in it is read_file \{"name":"(letters\.md|ridership\.csv)"\}/,
  );
});

test('what looks like a key is in neither the recording nor the moves', async () => {
  const key = `sk-${'a1'.repeat(12)}`;
  const models = { billing: { rules: [{ reply: `Your key is ${key}.` }] } };
  const stored = await playConversation(
    supportTriage,
    mia.says(`Is the charge for ${key}?`, { to: ['billing'] }),
    { models },
  );
  const made = await recordTest(stored, supportTriage);
  expect(JSON.stringify([made.recording, made.moves])).not.toContain(key);
  expect(made.run).toHaveSaid('billing', 'Your key is [key].');
});
