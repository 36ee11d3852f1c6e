import { defineTroupe } from '../../src/index.ts'; // from 'troupe' in your own project
import { model } from '../model.ts';
import * as scripts from './scripts.ts';
import { listFiles, publish, readArchive } from './tools.ts';

export const troupe = defineTroupe({
  tools: [listFiles, readArchive, publish],
  agents: [
    {
      id: 'editor',
      role: 'manager',
      description: 'Plans articles and publishes them.',
      instructions: `You are asked for an article.
1. Ask people who it is for, with two or three choices. Then wait for the answer.
2. Delegate the figures to @figures and the voices to @voices, both at once, with the question and the reader.
3. Write the article from their results alone, 80 words at most, and publish it.
4. Tell people where it is. If it was not approved, say so and ask what to change.`,
      tools: ['ask', 'delegate', 'publish'],
      ...model(scripts.editor),
    },
    {
      id: 'figures',
      role: 'worker',
      description: 'Finds numbers in the archive.',
      instructions: 'Look at the files of the archive. Answer with numbers, and name the file of each.',
      tools: ['list_files', 'read_file'],
      ...model(scripts.figures),
    },
    {
      id: 'voices',
      role: 'worker',
      description: 'Finds what people have said in the archive.',
      instructions: 'Look at the files of the archive. Answer with quotations, word by word.',
      tools: ['list_files', 'read_file'],
      ...model(scripts.voices),
    },
  ],
  defaults: { respondWhenUnaddressed: 'editor' },
  // Budget for the whole article, including everything delegated for it.
  budgets: { conversation: { tokens: 2_000_000 } },
});
