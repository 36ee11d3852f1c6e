import type { Author, Event } from '../../src/index.ts';
import type { Story } from '../play/story.ts';

const MIA: Author = { kind: 'user', id: 'mia', name: 'Mia' };
const DANA: Author = { kind: 'user', id: 'dana', name: 'Dana' };

export const story: Story = {
  conversation: 'support',
  people: {
    answer: ({ choices }) => ({ by: DANA, content: choices?.[0] ?? 'Refund it.' }),
    decide: () => ({ by: DANA, approved: false }),
  },
  async play({ say, answer, pass, claim, events }) {
    await say({ author: MIA, content: 'There is a charge on my invoice twice!' });
    await say({ author: MIA, content: 'And the export ends with an error.' });
    const heard = (content: string) => events.find(isMessage(content))?.to.join();
    claim(
      'routing by capability finds billing for the charge and technical for the error',
      heard('charge on my invoice') === 'billing' && heard('export ends') === 'technical',
    );

    await say({ author: MIA, content: 'My subscription was renewed, and it costs more than you promised.' });
    claim('a message that matches no capability goes to triage', heard('costs more') === 'triage');
    const handoff = events.find(({ kind }) => kind === 'handoff');
    claim('triage hands over to billing', handoff?.to.join() === 'billing');
    const question = events.find(({ kind }) => kind === 'question');
    claim(
      'billing asks Dana, with choices',
      question?.kind === 'question' &&
        question.body.by.join() === 'dana' &&
        (question.body.choices ?? []).length > 1,
    );

    await pass(31);
    const reminder = events.findLast(isMessage('Reminder that you asked for'));
    const meanwhile = events.findLast(({ kind }) => kind === 'message');
    claim(
      'billing is reminded, and tells the customer that it takes longer',
      reminder !== undefined && meanwhile?.author.id === 'billing' && meanwhile.seq > reminder.seq,
    );

    await answer();
    const answered = events.find(({ kind }) => kind === 'question.answered');
    const last = events.findLast(({ kind }) => kind === 'message');
    claim(
      "billing replies after a person's answer",
      answered?.author.id === 'dana' && last?.author.id === 'billing' && last.seq > answered.seq,
    );
  },
};

function isMessage(part: string): (event: Event) => boolean {
  return (event) => event.kind === 'message' && event.body.content.includes(part);
}
