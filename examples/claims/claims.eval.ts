import { expect } from 'vitest';
import {
  answered,
  askedApproval,
  called,
  decided,
  delegated,
  describeConversation,
  handedOver,
  person,
} from '../../packages/evals/src/index.ts'; // from '@troupe/evals'
import { troupe } from './agents.ts';
import * as scripts from './scripts.ts';

const mia = person('mia');
const dana = person('dana');
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP8zwAFTDAGAwATKQED8NgHhAAAAABJRU5ErkJggg==';
const photo = { name: 'photo.png', mediaType: 'image/png', data: png };
const STORM = [mia.says('The storm broke our window.', { attachments: [photo] }), mia.answers('Of oak.')];
const LETTER = mia.says('In writing, please.', { to: ['letters'] });

export const evals = describeConversation(
  troupe,
  (scenario) => {
    scenario(
      'a storm, which Dana approves',
      [...STORM, dana.approves('pay', { note: 'As shown.' }), LETTER],
      {
        'the assessor has the photo, and fraud works beside it without': (run) => {
          expect(run).toHaveDelegated('intake', 'assessor', /claim 1/, { turn: 1 });
          expect(run).toHaveDelegated('intake', 'fraud', /claim 1/, { turn: 1 });
          expect(run).toHaveBeenTold('assessor', '[image: photo.png');
          expect(run).not.toHaveBeenTold('fraud', 'photo.png');
        },
        'each knows what is its own to decide': (run) => {
          expect(run).toHaveBeenTold('intake', 'to @fraud, with no attachments');
          expect(run).toHaveBeenTold('adjuster', 'Above 5,000 euros your call waits for Dana.');
          expect(run).toHaveBeenTold('letters', 'Only what you were told.');
        },
        'the claimant is asked for what the photo does not show': (run) =>
          expect(run).toHaveAsked('assessor', 'mia', /floor/, { times: 1 }),
        'nothing is paid before Dana, and nobody else, has approved it': (run) => {
          expect(run).not.toHaveAskedApproval('adjuster', 'mia', 'pay');
          expect(run).toHaveHappenedInOrder([
            delegated('intake', 'fraud'),
            answered('assessor', 'intake', '6200 euros'),
            handedOver('intake', 'adjuster'),
            askedApproval('adjuster', 'dana', 'pay', { claim: 1, euros: 6_200 }),
            decided('dana', 'approved'),
            called('adjuster', 'pay', undefined, { outcome: 'done' }),
          ]);
        },
        'letters, which was not there, knows what was assessed, approved and paid': (run) => {
          for (const words of [
            /assessor finished a task/,
            'Dana approved a call',
            'As shown.',
            /adjuster called pay/,
          ])
            expect(run).toHaveBeenTold('letters', words);
        },
      },
    );

    scenario('a storm, which Dana denies', [...STORM, dana.denies('pay')], {
      'nothing is paid, and the claimant is told': (run) => {
        expect(run).not.toHaveCalled('adjuster', 'pay', undefined, { outcome: 'done' });
        expect(run).toHaveAnswered('adjuster', 'mia', 'I am sorry');
      },
    });

    scenario('two small damages', [mia.says('A vase fell.'), mia.says('Another one.', { to: ['intake'] })], {
      'the first is paid without Dana': (run) => {
        expect(run).not.toHaveAskedApproval('adjuster', 'dana', 'pay');
        expect(run).toHaveCalled('adjuster', 'pay', { euros: 300 }, { outcome: 'done', times: 1 });
      },
      'the second is looked at': (run) => {
        expect(run).toHaveAnswered('fraud', 'intake', /^Odd/);
        expect(run).toHaveAnswered('adjuster', 'mia', 'We look at your claims');
      },
    });
  },
  { name: 'claims', models: scripts },
);
