import * as z from 'zod';
import { readInside } from '../../base/read-inside.ts';
import { MAX_SKILL_BYTES, readSkill, type Skill, SKILL_FILE, skillFiles, type SkillSet } from '../skill.ts';
import { defineTool, type Tool } from '../tool.ts';

export const LOAD_SKILL = 'load_skill';

const Arguments = z.object({
  name: z.string().min(1).describe('The skill, as in the list of skills.'),
  file: z
    .string()
    .min(1)
    .optional()
    .describe(`A file of the skill, by its path there. Default: ${SKILL_FILE}.`),
});

/** Reads a skill of an agent, or one of its files. An agent with skills has it. */
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
