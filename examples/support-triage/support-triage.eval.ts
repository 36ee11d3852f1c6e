import { expect } from 'vitest';
import { asked, describeConversation, handedOver, minutesPass, person, said } from '../../src/evals/index.ts'; // from 'troupe/evals'
import { troupe } from './agents.ts';
import * as scripts from './scripts.ts';

const mia = person('mia');
const dana = person('dana');
const RENEWAL = 'My subscription was renewed, and it costs more than you promised.';

export const evals = describeConversation(
  troupe,
  (scenario) => {
    scenario('a question on money', mia.says('There is a charge on my invoice twice!'), {
      'billing is woken, and triage is not': (run) => {
        expect(run).toHaveWoken('billing', { by: 'mia' });
        expect(run).not.toHaveWoken('triage');
      },
      'billing answers at once, and asks nobody': (run) => {
        expect(run).toHaveAnswered('billing', 'mia', 'a reservation, which ends in three days');
        expect(run).not.toHaveAsked('billing', /./);
        expect(run).toHaveTakenAtMost({ turns: 1, steps: 1 });
      },
      'billing knows how much it may refund': (run) =>
        expect(run).toHaveBeenTold('billing', 'You may not refund more than 50 euros yourself.'),
      'billing cannot hand over: money stays with it': (run) =>
        expect(run).not.toHaveBeenTold('billing', /^handoff: /),
    });

    scenario('a question on the program', mia.says('The export ends with an error.'), {
      'technical is woken, and answers': (run) =>
        expect(run).toHaveAnswered('technical', 'mia', 'version 2.4'),
      'technical knows that it answers for the program': (run) =>
        expect(run).toHaveBeenTold('technical', 'You answer for the program.'),
      'technical may hand over what is not its field': (run) =>
        expect(run).toHaveBeenTold('technical', /^handoff: /),
    });

    scenario(
      'a renewal at a price that nobody promised',
      [mia.says(RENEWAL), minutesPass(31), dana.answers('refund 90 euros'), mia.says('That was quick.')],
      {
        'triage is woken, as the words are of no field': (run) =>
          expect(run).toHaveWoken('triage', { with: 'costs more' }),
        'triage knows whom to hand over to': (run) => {
          expect(run).toHaveBeenTold(
            'triage',
            'hand over at once: @billing for money, @technical for what does not work',
          );
        },
        'triage hands over to billing, with a goal': (run) =>
          expect(run).toHaveHandedOver('triage', 'billing', /old price for the year/, { times: 1 }),
        'billing asks Dana alone, with the choices that there are': (run) => {
          expect(run).toHaveAsked('billing', 'dana', /Refund it\?/, {
            choices: ['refund 90 euros', 'refund nothing'],
          });
          expect(run).not.toHaveAsked('billing', 'mia');
        },
        'billing knows whom to ask, and that it has to remind itself': (run) => {
          expect(run).toHaveBeenTold('billing', /ask people, by "dana", with the choices that there are/);
          expect(run).toHaveBeenTold(
            'billing',
            /set yourself\s+a reminder for in 30 minutes in the same step/,
          );
        },
        'the customer hears first that it takes longer, then how it ends': (run) =>
          expect(run).toHaveHappenedInOrder([
            handedOver('triage', 'billing'),
            asked('billing', 'dana'),
            said('billing', 'This takes longer than I thought'),
            said('dana', 'refund 90 euros'),
            said('billing', 'the 90 euros are on their way back to you'),
          ]),
        'after the hand-over, billing hears what the customer says next': (run) =>
          expect(run).toHaveWoken('billing', { by: 'mia', with: 'That was quick.' }),
        'it takes five turns': (run) => expect(run).toHaveTakenAtMost({ turns: 5, steps: 7 }),
      },
    );

    scenario('nobody answers for a day', [mia.says(RENEWAL), minutesPass(24 * 60 + 1)], {
      'the question ends, and billing is woken with that': (run) => {
        expect(run).toHaveHappenedInOrder([
          asked('billing', 'dana'),
          said('billing', 'This takes longer than I thought'),
          said('billing', 'I ask her again tomorrow'),
        ]);
      },
    });
  },
  { name: 'support triage', models: scripts },
);
