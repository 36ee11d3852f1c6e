import { expect } from 'vitest';
import {
  asked,
  describeConversation,
  handedOver,
  minutesPass,
  person,
  said,
  scriptedUser,
  simulatedUser,
} from '../../packages/evals/src/index.ts'; // from '@troupe/evals'
import { troupe } from './agents.ts';
import * as scripts from './scripts.ts';

const mia = person('mia');
const dana = person('dana');
const RENEWAL = 'My subscription was renewed, and it costs more than you promised.';

/** A customer who waits until she knows. With a model in place of the rules, she finds her own words. */
const customer = simulatedUser({
  person: mia,
  goal: 'Get the 90 euros back that the renewal costs more than you were promised.',
  persona: 'Patient and polite. Knows what she was promised, and no more.',
  waitMinutes: 31,
  model: {
    rules: [
      { when: { contains: 'you speak first' }, reply: JSON.stringify({ move: 'say', text: RENEWAL }) },
      {
        when: { contains: 'on their way back to you' },
        reply: '{ "move": "leave", "text": "They refund it." }',
      },
      { reply: '{ "move": "wait", "text": "" }' },
    ],
  },
});
const boss = scriptedUser([minutesPass(31), dana.answers('refund 90 euros')]);

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

    scenario(
      'a customer who wants her money back',
      { users: [customer, boss] },
      {
        'she knows in the end that she gets it': (run) =>
          expect(run).toHaveReachedGoal('mia', 'They refund it.'),
        'she had to write once': (run) => expect(run).toHaveSaid('mia', /./, { times: 1 }),
        'she was told meanwhile that it takes longer': (run) =>
          expect(run).toHaveSaid('billing', 'This takes longer than I thought'),
        'the company took no more than with a script': (run) =>
          expect(run).toHaveTakenAtMost({ turns: 4, steps: 6 }),
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
