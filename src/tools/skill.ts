import * as z from 'zod';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readInside } from '../base/read-inside.ts';
import { defineTool, type Tool } from './tool.ts';

/**
 * A skill: a directory with a SKILL.md that says how to do something, and files for it. Layout and fields are those of
 * https://agentskills.io, so that several programs can use one directory.
 */
export interface Skill {
  name: string;
  description: string;
  dir: string;
}

/** The skills of one agent. */
export interface SkillSet {
  /** The skills as last read, by name. */
  now: readonly Skill[];
  /** Reads the list again if something changed. Returns `now` if the list is unchanged or cannot be read. */
  read(): Promise<readonly Skill[]>;
}

export const SKILL_FILE = 'SKILL.md';
/** Most bytes of SKILL.md, and of each other file of a skill. */
const MAX_SKILL_BYTES = 64 * 1_024;
const MAX_LISTED = 100;
const MAX_DEPTH = 5;

/** Other fields are for other programs. */
const Frontmatter = z.object({
  name: z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/, 'use at most 64 of a-z, 0-9 and -'),
  description: z.string().trim().min(1).max(1_024),
});

type SkillText =
  | { kind: 'read'; skill: Skill; text: string }
  | { kind: 'absent' }
  | { kind: 'refused'; problem: string };

/** Reads the SKILL.md of a directory. `text`: what follows the frontmatter. Never rejects. */
export async function readSkill(dir: string): Promise<SkillText> {
  const read = await readInside(dir, SKILL_FILE, MAX_SKILL_BYTES);
  if (read.kind !== 'text') return read;
  const refused = (problem: string) => ({ kind: 'refused' as const, problem: `${SKILL_FILE} ${problem}` });
  const parts = partsOf(read.text);
  if (!parts) return refused('does not begin with a frontmatter: --- name and description ---');
  const fields = Frontmatter.safeParse(await yamlOf(parts.fields));
  if (!fields.success) {
    const [issue] = fields.error.issues;
    return refused(`has no valid ${issue?.path.join('.') || 'frontmatter'}: ${issue?.message}`);
  }
  return { kind: 'read', skill: { ...fields.data, dir }, text: parts.text.trim() };
}

/** Null if there is no frontmatter. */
function partsOf(text: string): { fields: string; text: string } | null {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  if (lines[0]?.trimEnd() !== '---') return null;
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === '---');
  if (end < 0) return null;
  return { fields: lines.slice(1, end).join('\n'), text: lines.slice(end + 1).join('\n') };
}

async function yamlOf(text: string): Promise<unknown> {
  const { parse } = await import('yaml');
  try {
    // No aliases, because they could make a small text huge.
    return parse(text, { maxAliasCount: 0, logLevel: 'error' });
  } catch {
    return null;
  }
}

/** Paths of a skill's other files within it, in order; at most a hundred. Links are left out. */
async function skillFiles({ dir }: Skill): Promise<string[]> {
  const files: string[] = [];
  const walk = async (folder: string, depth: number): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (files.length >= MAX_LISTED || entry.name.startsWith('.')) continue;
      if (entry.isDirectory() && depth < MAX_DEPTH) await walk(path, depth + 1);
      else if (entry.isFile() && path !== join(dir, SKILL_FILE)) files.push(relative(dir, path));
    }
  };
  await walk(dir, 0);
  return files;
}

export const LOAD_SKILL = 'load_skill';

const Arguments = z.object({
  name: z.string().min(1).describe('The skill, as in the list of skills.'),
  file: z
    .string()
    .min(1)
    .optional()
    .describe(`A file of the skill, by its path there. Default: ${SKILL_FILE}.`),
});

/** Reads a skill of an agent, or one of its files. An agent with skills has this tool. */
export function loadSkillTool(skills: SkillSet): Tool {
  return defineTool({
    name: LOAD_SKILL,
    description: 'Loads the instructions of a skill, or a file that they name.',
    schema: Arguments,
    idempotent: true,
    bounded: true,
    async run({ name, file = SKILL_FILE }) {
      const known = await skills.read();
      const skill = known.find((each) => each.name === name);
      if (!skill) {
        const names = known.map((each) => each.name).join(', ');
        throw new Error(`there is no skill ${JSON.stringify(name)}. Skills: ${names}`);
      }
      return file === SKILL_FILE ? instructionsOf(skill) : fileOf(skill, file);
    },
  });
}

async function instructionsOf(skill: Skill): Promise<string> {
  const read = await readSkill(skill.dir);
  if (read.kind === 'absent') throw new Error(`the skill ${skill.name} is gone`);
  if (read.kind === 'refused') throw new Error(`the skill ${skill.name} cannot be read: ${read.problem}`);
  const files = await skillFiles(skill);
  const list = files.map((file) => `- ${file}`).join('\n');
  return files.length === 0
    ? read.text
    : `${read.text}\n\n[files of this skill, read with ${LOAD_SKILL} and file:\n${list}]`;
}

async function fileOf(skill: Skill, file: string): Promise<string> {
  const read = await readInside(skill.dir, file, MAX_SKILL_BYTES);
  if (read.kind === 'text') return read.text;
  if (read.kind === 'refused') throw new Error(read.problem);
  const files = await skillFiles(skill);
  throw new Error(
    `the skill ${skill.name} has no file ${JSON.stringify(file)}. Files: ${files.join(', ') || 'none'}`,
  );
}
