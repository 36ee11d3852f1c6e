import { expect } from 'vitest';
import {
  answered,
  askedApproval,
  called,
  decided,
  delegated,
  describeConversation,
  person,
} from '../../packages/evals/src/index.ts'; // from '@troupe/evals'
import { troupe } from './agents.ts';
import * as scripts from './scripts.ts';

const ana = person('ana');
const UP_TO_APPROVAL = [
  ana.says('Does the night tram pay? I would like an article on it.'),
  ana.answers('those who ride at night'),
];

/** A reader that asks for a file which is not for it. */
const curious = {
  rules: [
    { when: { step: 1 }, calls: [{ name: 'read_file', args: { name: '../agents.ts' } }] },
    { reply: 'There is no such file.' },
  ],
};

export const evals = describeConversation(
  troupe,
  (scenario) => {
    scenario('an article that is approved', [...UP_TO_APPROVAL, ana.approves('publish', { note: 'Good.' })], {
      'the editor is woken, and asks first who the article is for': (run) => {
        expect(run).toHaveWoken('editor', { by: 'ana' });
        const choices = ['the city council', 'those who ride at night'];
        expect(run).toHaveAsked('editor', 'ana', 'Who is the article for?', { choices, turn: 1 });
      },
      'figures and voices are given their tasks in one turn': (run) => {
        expect(run).toHaveDelegated('editor', 'figures', /per ride/, { turn: 2 });
        expect(run).toHaveDelegated('editor', 'voices', /Two voices/, { turn: 2 });
      },
      'figures sees which files there are before it reads two of them': (run) =>
        expect(run).toHaveHappenedInOrder([
          called('figures', 'list_files', {}, { result: /costs\.csv\nletters\.md\nridership\.csv/ }),
          called('figures', 'read_file', { name: 'ridership.csv' }, { result: '611' }),
          called('figures', 'read_file', { name: 'costs.csv' }, { outcome: 'done' }),
        ]),
      'voices reads the letters as they are': (run) =>
        expect(run).toHaveCalled(
          'voices',
          'read_file',
          { name: 'letters.md' },
          { result: 'I take the late shift again' },
        ),
      'figures knows that it has to name the file of each number': (run) =>
        expect(run).toHaveBeenTold('figures', 'Answer with numbers, and name the file of each.'),
      'voices knows that quotations are word by word': (run) =>
        expect(run).toHaveBeenTold('voices', 'Answer with quotations, word by word.'),
      'the editor knows that results alone count, and how long an article may be': (run) =>
        expect(run).toHaveBeenTold('editor', /from their results alone, 80 words at most/),
      'readers cannot publish, and the editor does not read': (run) => {
        expect(run).not.toHaveBeenTold(/figures|voices/, /^publish: /);
        expect(run).not.toHaveBeenTold('editor', /^read_file: /);
      },
      'Ana, and nobody else, is asked to approve exactly this article': (run) => {
        const article = { title: 'The night tram pays', text: /^611,000 people .*€3\.65/ };
        expect(run).toHaveAskedApproval('editor', 'ana', 'publish', article, { times: 1 });
        expect(run).not.toHaveAskedApproval('editor', 'somebody else', 'publish');
      },
      'it is published once, and only after that': (run) => {
        expect(run).toHaveCalled('editor', 'publish', undefined, { outcome: 'done', times: 1 });
        expect(run).toHaveHappenedInOrder([
          delegated('editor', 'figures'),
          answered('figures', 'editor'),
          askedApproval('editor', 'ana', 'publish'),
          decided('ana', 'approved'),
          called('editor', 'publish', undefined, { result: 'published as' }),
          answered('editor', 'ana', 'It is out.'),
        ]);
      },
      'it takes six turns': (run) => expect(run).toHaveTakenAtMost({ turns: 6, steps: 12, tokens: 20_000 }),
    });

    scenario('an article that is denied', [...UP_TO_APPROVAL, ana.denies('publish', { note: 'Too long.' })], {
      'it is not published': (run) =>
        expect(run).not.toHaveCalled('editor', 'publish', undefined, { outcome: 'done' }),
      'the editor says so, and asks what to change': (run) =>
        expect(run).toHaveAnswered('editor', 'ana', /not published\. What should be changed\?/),
    });

    scenario(
      'a reader asks for a file outside of the archive',
      UP_TO_APPROVAL,
      {
        'it is refused, and told which files there are': (run) =>
          expect(run).toHaveCalled(
            'voices',
            'read_file',
            { name: '../agents.ts' },
            { outcome: 'failed', result: 'there are costs.csv, letters.md, ridership.csv' },
          ),
      },
      { models: { ...scripts, voices: curious } },
    );
  },
  // In a test nothing is published.
  {
    name: 'research desk',
    models: scripts,
    tools: { publish: ({ title }) => `published as ${String(title)}` },
  },
);
