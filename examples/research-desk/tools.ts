import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts'; // from 'troupe' in your own project

const DATA = path.join(import.meta.dirname, 'data');

export const listFiles = defineTool({
  name: 'list_files',
  description: 'Names the files of the archive.',
  schema: z.object({}),
  idempotent: true,
  run: async () => (await readdir(DATA)).toSorted().join('\n'),
});

export const readArchive = defineTool({
  name: 'read_file',
  description: 'Reads a file of the archive.',
  schema: z.object({ name: z.string() }),
  idempotent: true,
  async run({ name }) {
    const names = await readdir(DATA);
    // A model may ask for any path.
    if (!names.includes(name)) throw new Error(`there is no file "${name}"; there are ${names.join(', ')}`);
    return readFile(path.join(DATA, name), 'utf8');
  },
});

/** The only tool with an external effect: each call waits until a person has approved exactly this text. */
export const publish = defineTool({
  name: 'publish',
  description: 'Publishes an article.',
  schema: z.object({ title: z.string().min(1), text: z.string().min(1) }),
  needsApproval: { by: ['ana'], deadlineMs: 3_600_000 },
  async run({ title, text }) {
    const file = path.join(await mkdtemp(path.join(tmpdir(), 'research-desk-')), 'article.md');
    await writeFile(file, `# ${title}\n\n${text}\n`);
    return `published as ${file}`;
  },
});
