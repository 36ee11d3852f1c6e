import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { editor, figures, voices } from '../../../../examples/research-desk/scripts.ts';
import { agent, company, instructions, type Mutant, tool, withTool, without } from './mutant.ts';

const APPROVAL = 'Ana, and nobody else, is asked to approve exactly this article';
const FIRST = 'the editor is woken, and asks first who the article is for';
const DATA = path.join(import.meta.dirname, '../../../examples/research-desk/data');
const FILES = 'figures sees which files there are before it reads two of them';
const VOICES = 'voices reads the letters as they are';
const BOTH = 'figures and voices are given their tasks in one turn';
const APART = 'readers cannot publish, and the editor does not read';

export const MUTANTS: readonly Mutant[] = [
  {
    breaks: 'prompt',
    what: 'figures need not name files',
    change: instructions('figures', ', and name the file of each'),
    caughtBy: 'figures knows that it has to name the file of each number',
  },
  {
    breaks: 'prompt',
    what: 'voices may quote as it likes',
    change: instructions('voices', ', word by word'),
    caughtBy: 'voices knows that quotations are word by word',
  },
  {
    breaks: 'prompt',
    what: 'an article may have 800 words',
    change: instructions('editor', '80 words', '800 words'),
    caughtBy: 'the editor knows that results alone count, and how long an article may be',
  },
  {
    breaks: 'prompt',
    what: 'the editor may invent results',
    change: instructions('editor', ' from their results alone'),
    caughtBy: 'the editor knows that results alone count, and how long an article may be',
  },
  { breaks: 'tool', what: 'the editor cannot ask', change: without('editor', 'ask'), caughtBy: FIRST },
  {
    breaks: 'tool',
    what: 'the editor cannot delegate',
    change: without('editor', 'delegate'),
    caughtBy: BOTH,
  },
  {
    breaks: 'tool',
    what: 'the editor cannot publish',
    change: without('editor', 'publish'),
    caughtBy: APPROVAL,
  },
  {
    breaks: 'tool',
    what: 'nobody has to approve what is published',
    change: tool('publish', { needsApproval: false }),
    caughtBy: APPROVAL,
  },
  {
    breaks: 'tool',
    what: 'anybody may approve it',
    change: tool('publish', { needsApproval: true }),
    caughtBy: APPROVAL,
  },
  {
    breaks: 'tool',
    what: 'another person has to approve it',
    change: tool('publish', { needsApproval: { by: ['ben'] } }),
    caughtBy: APPROVAL,
  },
  {
    breaks: 'tool',
    what: 'a reader may publish',
    change: withTool('voices', 'publish'),
    caughtBy: APART,
  },
  {
    breaks: 'tool',
    what: 'the editor reads the archive itself',
    change: withTool('editor', 'read_file'),
    caughtBy: APART,
  },
  {
    breaks: 'tool',
    what: 'list_files hides a file',
    change: tool('list_files', { run: () => 'costs.csv\nridership.csv' }),
    caughtBy: FILES,
  },
  {
    breaks: 'tool',
    what: 'read_file reads the beginning only',
    change: tool('read_file', {
      run: async ({ name }: { name: string }) => (await readFile(path.join(DATA, name), 'utf8')).slice(0, 40),
    }),
    caughtBy: VOICES,
  },
  {
    breaks: 'tool',
    what: 'read_file reads outside of the archive',
    change: tool('read_file', {
      run: ({ name }: { name: string }) => readFile(path.join(DATA, name), 'utf8'),
    }),
    caughtBy: 'it is refused, and told which files there are',
  },
  { breaks: 'tool', what: 'voices cannot read', change: without('voices', 'read_file'), caughtBy: VOICES },
  {
    breaks: 'routing',
    what: 'figures answers what names nobody',
    change: company({ defaults: { respondWhenUnaddressed: 'figures' } }),
    caughtBy: FIRST,
  },
  { breaks: 'routing', what: 'nobody answers', change: company({ defaults: {} }), caughtBy: FIRST },
  {
    breaks: 'routing',
    what: 'voices has another address',
    change: agent('voices', () => ({ id: 'letters' })),
    models: { editor, figures, letters: voices },
    caughtBy: BOTH,
  },
];
