import { existsSync } from 'node:fs';
import type { Author } from '../../src/index.ts';
import type { Story } from '../play/story.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };

export const story: Story = {
  conversation: 'desk',
  people: {
    answer: ({ choices }) => ({ by: ANA, content: choices?.[0] ?? 'Decide yourself.' }),
    decide: () => ({ by: ANA, approved: true, note: 'Good. Go ahead.' }),
  },
  async play({ say, answer, claim, events }) {
    await say({ author: ANA, content: 'Does the night tram pay? I would like an article on it.' });
    await answer();

    const answered = events.find(({ kind }) => kind === 'question.answered');
    claim('the editor asked, and a person answered', answered?.author.kind === 'user');
    const results = events.flatMap((event) => (event.kind === 'tool.result' ? [event] : []));
    const read = results.filter(({ body }) => body.name === 'read_file' && body.outcome === 'done');
    const readers = new Set(read.map(({ author, conversation }) => `${author.id} in ${conversation}`));
    claim('both researchers read the archive, each in its own thread', readers.size === 2);

    const decided = events.find(({ kind }) => kind === 'approval.decided');
    const published = results.filter(({ body }) => body.name === 'publish' && body.outcome === 'done');
    const [first] = published;
    const isApproved = decided?.kind === 'approval.decided' && decided.body.outcome === 'approved';
    claim(
      'the article is published once if a person approved it, otherwise never',
      published.length === (isApproved ? 1 : 0) &&
        (!first || (decided !== undefined && decided.seq < first.seq)),
    );
    const file = /published as (\S+)/.exec(first?.body.content ?? '')?.[1] ?? '';
    claim(isApproved ? 'the article is there' : 'there is no article', existsSync(file) === isApproved);
    const last = events.findLast(({ kind }) => kind === 'message');
    claim('the editor reported the outcome', last?.author.id === 'editor');
  },
};
