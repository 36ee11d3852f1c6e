import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import { readSkill, type Skill, SKILL_FILE, type SkillSet } from '../../tools/skill.ts';

interface SkillOwners {
  skills?: readonly string[] | undefined;
  agents: readonly { id: string; skills?: readonly string[] | undefined }[];
  templates?: readonly { id: string; skills?: readonly string[] | undefined }[] | undefined;
}

/** Longer lists would fill every prompt. */
const MAX_SKILLS = 100;

/**
 * The skills of each agent, by name: those of the troupe's directories, and of its own, which replace others of the same
 * name. Throws `config_invalid`, which names each directory and file that is refused; with `isTolerant` these are warnings.
 */
export async function openSkills(
  definition: SkillOwners,
  { onWarning, isTolerant }: { onWarning: (error: unknown, where: string) => void; isTolerant: boolean },
): Promise<ReadonlyMap<string, SkillSet>> {
  const { byAgent, problems } = await readAll(definition);
  if (problems.length > 0 && !isTolerant) {
    const message = `${problems.length} problem(s) with skills:\n  ${problems.join('\n  ')}`;
    throw new TroupeError('config_invalid', message, { problems });
  }
  for (const problem of problems) onWarning(problem, 'skills');
  const warned = new Set<string>();
  const warnOnce = (problem: string, stamp: string) => {
    if (warned.has(`${stamp}\n${problem}`)) return;
    warned.add(`${stamp}\n${problem}`);
    onWarning(`${problem}; the list read before it stays`, 'skills');
  };
  const sets = new Map<string, SkillSet>();
  for (const agent of everyone(definition)) {
    const first = byAgent.get(agent.id);
    const alone = { skills: definition.skills, agents: [agent] };
    if (first) sets.set(agent.id, followSkills(first, alone, warnOnce));
  }
  return sets;
}

/** The skills of the one agent of `owner`. */
function followSkills(
  first: readonly Skill[],
  owner: SkillOwners,
  onProblem: (problem: string, stamp: string) => void,
): SkillSet {
  const dirs = [...(owner.skills ?? []), ...owner.agents.flatMap(({ skills = [] }) => skills)];
  let read = '';
  const set: SkillSet = {
    now: first,
    async read() {
      const stamp = await stampOf(dirs);
      if (stamp === read) return set.now;
      const { byAgent, problems } = await readAll(owner);
      read = stamp;
      for (const problem of problems) onProblem(problem, stamp);
      const found = owner.agents.flatMap(({ id }) => byAgent.get(id) ?? []);
      if (problems.length === 0 && !isSame(found, set.now)) set.now = found;
      return set.now;
    },
  };
  return set;
}

function isSame(a: readonly Skill[], b: readonly Skill[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Changes when a skill is added, changed or removed. Computing it is cheaper than reading a hundred files every turn. */
async function stampOf(dirs: readonly string[]): Promise<string> {
  const stamps = await Promise.all(
    dirs.map(async (dir) => {
      const names = await foldersOf(dir);
      const files = (names ?? []).map((name) => fileStamp(join(dir, name, SKILL_FILE)));
      return [dir, names, ...(await Promise.all(files))];
    }),
  );
  return JSON.stringify(stamps);
}

async function fileStamp(path: string): Promise<string> {
  try {
    const { mtimeMs, ctimeMs, size, ino } = await stat(path);
    return [mtimeMs, ctimeMs, size, ino].join(' ');
  } catch {
    // Missing and unreadable files get the same stamp; reading them shows which it is.
    return '';
  }
}

function everyone({ agents, templates = [] }: SkillOwners): SkillOwners['agents'] {
  return [...agents, ...templates];
}

/** What is wrong with the skills of a definition, one line each. */
export async function skillProblems(definition: SkillOwners): Promise<string[]> {
  return (await readAll(definition)).problems;
}

async function readAll(
  definition: SkillOwners,
): Promise<{ byAgent: Map<string, readonly Skill[]>; problems: string[] }> {
  const common = await readDirs('skills', definition.skills ?? []);
  const problems = [...common.problems];
  const byAgent = new Map<string, readonly Skill[]>();
  const read = await Promise.all(
    everyone(definition).map(async ({ id, skills = [] }) => ({
      id,
      own: await readDirs(`skills of @${id}`, skills),
    })),
  );
  for (const { id, own } of read) {
    problems.push(...own.problems);
    const named = new Map([...common.skills, ...own.skills].map((skill) => [skill.name, skill]));
    const skills = [...named.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    if (skills.length > MAX_SKILLS)
      problems.push(`skills of @${id}: ${skills.length} skills; at most ${MAX_SKILLS} are listed in prompts`);
    if (skills.length > 0) byAgent.set(id, skills.slice(0, MAX_SKILLS));
  }
  return { byAgent, problems };
}

async function readDirs(
  path: string,
  dirs: readonly string[],
): Promise<{ skills: Skill[]; problems: string[] }> {
  const found = await Promise.all(dirs.map((dir) => readDir(path, dir)));
  return {
    skills: found.flatMap(({ skills }) => skills),
    problems: found.flatMap(({ problems }) => problems),
  };
}

/** Each folder with a SKILL.md is a skill. Other folders are ignored. */
async function readDir(path: string, dir: string): Promise<{ skills: Skill[]; problems: string[] }> {
  const names = await foldersOf(dir);
  if (!names) return { skills: [], problems: [`${path}: there is no directory ${dir}`] };
  const read = await Promise.all(
    names.map(async (name) => ({ folder: join(dir, name), found: await readSkill(join(dir, name)) })),
  );
  const skills = read.flatMap(({ found }) => (found.kind === 'read' ? [found.skill] : []));
  const problems = read.flatMap(({ folder, found }) =>
    found.kind === 'refused' ? [`${path}: ${folder}: ${found.problem}`] : [],
  );
  if (skills.length + problems.length === 0) problems.push(`${path}: ${dir} has no folder with a SKILL.md`);
  return { skills, problems };
}

/** Null unless it is a readable directory. */
async function foldersOf(dir: string): Promise<string[] | null> {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
  } catch {
    return null;
  }
}
