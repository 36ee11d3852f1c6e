import { stat } from 'node:fs/promises';
import type { FileFragment } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import { readInside } from '../../base/read-inside.ts';

/** The instruction files of a workspace, in the order in which an agent reads them, and their layers. */
const INSTRUCTION_FILES = [
  { file: 'AGENTS.md', layer: 'rules' },
  { file: 'IDENTITY.md', layer: 'persona' },
  { file: 'SOUL.md', layer: 'persona' },
] as const;

const MAX_BYTES = 64 * 1_024;

interface Workspaces {
  workspace?: string | undefined;
  agents: readonly { id: string; workspace?: string | undefined }[];
  templates?: readonly { id: string; workspace?: string | undefined }[] | undefined;
}

/** The instruction files of one agent. */
export interface InstructionFiles {
  /** As last read. */
  now: readonly FileFragment[];
  /** Reads them again. A file that cannot be read keeps its last text, with one warning. Returns `now` if nothing has changed. */
  read(): Promise<readonly FileFragment[]>;
}

/**
 * Reads the instruction files of all agents. Throws `config_invalid`, which names each workspace that is missing and each
 * file that is refused; with `isTolerant` these are warnings.
 */
export async function openInstructionFiles(
  definition: Workspaces,
  { onWarning, isTolerant }: { onWarning: (error: unknown, where: string) => void; isTolerant: boolean },
): Promise<ReadonlyMap<string, InstructionFiles>> {
  const problems = await workspaceProblems(definition);
  if (problems.length > 0 && !isTolerant) {
    const message = `${problems.length} problem(s) with instruction files:\n  ${problems.join('\n  ')}`;
    throw new TroupeError('config_invalid', message, { problems });
  }
  for (const problem of problems) onWarning(problem, 'workspace');
  const opened = new Map<string, InstructionFiles>();
  for (const { id, workspace } of everyone(definition)) {
    if (definition.workspace === undefined && workspace === undefined) continue;
    const files = followFiles(definition.workspace, workspace, (problem) => onWarning(problem, 'workspace'));
    await files.read();
    opened.set(id, files);
  }
  return opened;
}

/** What is wrong with the workspaces of a definition, one line each. */
export async function workspaceProblems(definition: Workspaces): Promise<string[]> {
  const named = [{ path: 'workspace', dir: definition.workspace }];
  for (const { id, workspace } of everyone(definition)) {
    named.push({ path: `workspace of @${id}`, dir: workspace });
  }
  const found = await Promise.all(
    named.map(async ({ path, dir }) => {
      if (dir === undefined) return [];
      if (!(await isDirectory(dir))) return [`${path}: there is no directory ${dir}`];
      const texts = await Promise.all(INSTRUCTION_FILES.map(({ file }) => readInside(dir, file, MAX_BYTES)));
      const names = INSTRUCTION_FILES.map(({ file }) => file).join(', ');
      if (texts.every(({ kind }) => kind === 'absent')) return [`${path}: ${dir} has none of ${names}`];
      return texts.flatMap((text) => (text.kind === 'refused' ? [`${path}: ${text.problem}`] : []));
    }),
  );
  return found.flat();
}

function everyone({ agents, templates = [] }: Workspaces): Workspaces['agents'] {
  return [...agents, ...templates];
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // Missing and unreadable directories get the same answer.
    return false;
  }
}

/** Files of the troupe's workspace, and of the agent's own. Its own IDENTITY.md and SOUL.md replace the common ones. */
function followFiles(
  common: string | undefined,
  own: string | undefined,
  onProblem: (problem: string) => void,
): InstructionFiles {
  const last = new Map<string, string>();
  const warned = new Set<string>();

  /** The text in force: null if there is no such file. */
  async function textOf(dir: string | undefined, file: string): Promise<string | null> {
    if (dir === undefined) return null;
    const key = `${dir}\n${file}`;
    const read = await readInside(dir, file, MAX_BYTES);
    if (read.kind !== 'refused') {
      if (read.kind === 'text') last.set(key, read.text);
      else last.delete(key);
      warned.delete(key);
    } else if (!warned.has(key)) {
      warned.add(key);
      onProblem(`${read.problem}; the text read before it stays`);
    }
    return last.get(key) ?? null;
  }

  const files: InstructionFiles = {
    now: [],
    async read() {
      const found: FileFragment[] = [];
      for (const { file, layer } of INSTRUCTION_FILES) {
        const [shared, mine] = await Promise.all([textOf(common, file), textOf(own, file)]);
        const given = layer === 'persona' && mine !== null ? [] : [{ name: file, text: shared }];
        for (const { name, text } of [...given, { name: ownName(file, common), text: mine }]) {
          if (text !== null && text.trim() !== '') found.push({ layer, name, text: text.trim() });
        }
      }
      if (!isSame(found, files.now)) files.now = found;
      return files.now;
    },
  };
  return files;
}

function ownName(file: string, common: string | undefined): string {
  return common !== undefined && file === 'AGENTS.md' ? `${file} (yours)` : file;
}

function isSame(a: readonly FileFragment[], b: readonly FileFragment[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ name, text }, index) => b[index]?.name === name && b[index].text === text)
  );
}
