import { expect } from 'vitest';
import { asked, describeConversation, handedOver, minutesPass, person, said } from '../../src/evals/index.ts'; // from 'troupe/evals' in your own project
import { troupe } from './agents.ts';

const mia = person('mia');
const dana = person('dana');

export const evals = describeConversation(troupe, (scenario) => {
  scenario('a charge that is on an invoice twice', mia.says('There is a charge on my invoice twice!'), {
    'billing is woken by the customer, and triage is not': (run) => {
      expect(run).toHaveWoken('billing', { by: 'mia', with: 'charge' });
      expect(run).not.toHaveWoken('triage');
    },
    'billing answers in one turn, and asks nobody': (run) => {
      expect(run).toHaveAnswered('billing', 'mia', /reservation, which ends in three days/);
      expect(run).not.toHaveAsked('billing', /./);
      expect(run).toHaveTakenAtMost({ turns: 1, steps: 1 });
    },
  });

  const renewal = 'My subscription was renewed, and it costs more than you promised.';
  scenario(
    'a renewal that costs more than was promised',
    [mia.says(renewal), minutesPass(31), dana.answers('refund 90 euros')],
    {
      'triage is woken, as no field of anybody fits': (run) =>
        expect(run).toHaveWoken('triage', { with: 'costs more' }),
      'triage hands over to billing': (run) =>
        expect(run).toHaveHandedOver('triage', 'billing', /old price/, { times: 1 }),
      'billing asks Dana, and nobody else, with choices': (run) =>
        expect(run).toHaveAsked('billing', 'dana', /Refund it\?/, {
          choices: ['refund 90 euros', 'refund nothing'],
        }),
      'the customer hears that it takes longer before Dana has answered': (run) =>
        expect(run).toHaveHappenedInOrder([
          handedOver('triage', 'billing'),
          asked('billing', 'dana'),
          said('billing', /takes longer/),
          said('dana', 'refund 90 euros'),
          said('billing', /back to you/),
        ]),
    },
  );
});
