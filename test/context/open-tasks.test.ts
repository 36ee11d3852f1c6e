import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { collectFacts } from '../../src/context/extract/facts.ts';
import type { Event } from '../../src/events/index.ts';
import { agentSays, at, call, personSays } from '../support/extract-events.ts';

const openAfter = (...events: Event[]) => collectFacts(at(events), null).pending.map(({ text }) => text);

describe('open tasks', () => {
  test.each([
    [
      'a bold heading',
      '**Remaining:**\n- WP15: Create the view\n- WP16: Remove the old one',
      ['WP15: Create the view', 'WP16: Remove the old one'],
    ],
    [
      'a Markdown heading and a blank line',
      '## Next steps\n\n1. one thing\n2. another\n\nGood night.',
      ['one thing', 'another'],
    ],
    ['a heading without items', 'It went well.\n\n**Remaining:**', []],
    ['a heading of another list', 'What I read:\n- the manual\n- the log', []],
    ['a heading of finished work', '**Done:**\n- the manual\n- the log', []],
    [
      'nested items',
      'Still to do:\n- the manual:\n  - a chapter on ships\n  - an index',
      ['the manual: a chapter on ships; an index'],
    ],
    ['boxes', 'Plan\n- [x] one\n- [ ] two\n  - [ ] three', ['two', 'three']],
    ['struck and ticked items', 'TODO:\n- ~~one~~\n- two ✅\n- three (done)\n- four', ['four']],
    ['a table with a state', '| Task | State |\n|---|---|\n| Manual | done |\n| Index | open |', ['Index']],
    ['a sentence under the heading', 'Next steps:\nWrite the manual.', ['Write the manual.']],
    ['a mark in a line', 'TODO: write the manual', ['TODO: write the manual']],
    ['German', 'Noch offen:\n- Handbuch schreiben', ['Handbuch schreiben']],
    ['French', 'Reste à faire :\n- écrire le manuel', ['écrire le manuel']],
    ['Spanish', 'Pendiente:\n- escribir el manual', ['escribir el manual']],
    ['Portuguese', 'Próximos passos:\n- escrever o manual', ['escrever o manual']],
    ['Italian', 'Da fare:\n- scrivere il manuale', ['scrivere il manuale']],
    ['Russian', 'Осталось:\n- написать руководство', ['написать руководство']],
    ['Chinese', '待办：\n- 写手册', ['写手册']],
    ['Japanese', '残り：\n- マニュアルを書く', ['マニュアルを書く']],
  ])('are the items, not the heading (%s)', (_, text, open) => {
    expect(openAfter(agentSays(text))).toEqual(open);
  });

  const LIST = agentSays(
    'Remaining:\n- WP15: Create the view\n- WP16: Remove the old one\n- write the changelog',
  );
  test.each([
    ['its box is ticked', '- [x] WP15: Create the view'],
    ['its number is said to be done', 'WP15 is done.'],
    ['it is in a range that is done', 'Completed WP1-WP15 today.'],
    ['it is struck through', '- ~~WP15: Create the view~~'],
    ['it is listed as done', '**Completed:**\n- WP15: Create the view'],
  ])('leave when %s', (_, text) => {
    expect(openAfter(LIST, agentSays(text))).toEqual(['WP16: Remove the old one', 'write the changelog']);
  });

  test('leave when a sentence with all of their words says so, and not when it asks or promises', () => {
    expect(openAfter(LIST, agentSays('The changelog is written and done.'))).toHaveLength(2);
    expect(openAfter(LIST, personSays('Is the changelog written and done?'))).toContain(
      'write the changelog',
    );
    expect(openAfter(LIST, agentSays('I will write the changelog once the tests are done.'))).toHaveLength(3);
  });

  test('leave when the to-do list completes them', () => {
    const todo = call('TodoWrite', { todos: [{ content: 'write the changelog', status: 'completed' }] });
    expect(openAfter(LIST, todo)).not.toContain('write the changelog');
  });

  test('with a number are listed once, in their newest words', () => {
    expect(openAfter(LIST, agentSays('Next steps:\n- WP15: Create the view from the old one'))).toEqual([
      'WP16: Remove the old one',
      'write the changelog',
      'WP15: Create the view from the old one',
    ]);
  });

  test('of a person are not closed by an untrusted one', () => {
    const log = at([personSays('TODO: write the changelog'), personSays('- [x] TODO: write the changelog')]);
    const eve = { kind: 'user', id: 'eve', name: 'Eve' } as const;
    const facts = collectFacts([log[0] as Event, { ...(log[1] as Event), author: eve }], null, ['ana']);
    expect(facts.pending.map(({ text }) => text)).toEqual(['TODO: write the changelog']);
  });

  test('are the items of any list under such a heading', () => {
    const item = fc.stringMatching(/^[a-z]{4,12} [a-z]{4,12}$/);
    fc.assert(
      fc.property(
        fc.uniqueArray(item, { minLength: 1, maxLength: 20 }),
        fc.constantFrom('- ', '* ', '1. ', '- [ ] '),
        (items, mark) => {
          const open = openAfter(
            agentSays(`Here we are.\n\n**To do:**\n${items.map((one) => mark + one).join('\n')}`),
          );
          expect(open).toEqual(items);
        },
      ),
    );
  });
});
