import type { Author } from '../../src/index.ts';
import type { Story } from '../play/story.ts';
import { Verdict } from './agents.ts';
import { DIFF } from './scripts.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };

export const story: Story = {
  conversation: 'review',
  people: {
    answer: () => ({ by: ANA, content: 'I do not know: decide yourself.' }),
    decide: () => ({ by: ANA, approved: false }),
  },
  async play({ say, answer, claim, events }) {
    const diff = { name: 'change.diff', mediaType: 'text/x-diff', data: Buffer.from(DIFF) };
    await say({ author: ANA, content: 'Can this be merged?', attachments: [diff] });
    await answer();

    const opened = events.flatMap((event) =>
      event.kind === 'delegation.opened' && event.conversation === 'review' ? [event] : [],
    );
    const first = opened.filter(({ body }) => body.how === 'delegate');
    const turns = new Set(first.map(({ turn }) => turn));
    claim(
      'three reviewers were given the diff in one turn',
      new Set(first.map(({ body }) => body.assignee)).size === 3 && turns.size === 1,
    );
    claim('the lead followed up once', opened.length - first.length === 1);
    const ends = events.filter(({ kind, to }) => kind === 'delegation.ended' && to.length > 0);
    claim('every task ended exactly once', ends.length === opened.length);
    const said = events.filter(({ kind, author }) => kind === 'message' && author.id === 'lead');
    const last = said.at(-1);
    const verdict = Verdict.safeParse(last?.kind === 'message' ? last.body.data : undefined);
    claim('there is one verdict, as data', said.length === 1 && verdict.success);
    const list = events.findLast(({ kind }) => kind === 'todos');
    claim(
      "the lead's list has no open items",
      list?.kind === 'todos' &&
        list.body.items.every(({ status }) => status === 'done' || status === 'dropped'),
    );
  },
};
