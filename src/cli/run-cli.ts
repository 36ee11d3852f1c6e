import { type Command, CommanderError } from 'commander';
import { toTroupeError } from '../base/errors.ts';
import { errorText } from './render/output.ts';
import { createProgram } from './program.ts';

const USAGE = 2;
/** Commander writes its suggestion on a line of its own. */
const NEAREST = /\n\((Did you mean )(.*)\?\)$/;

/** Runs one command line. Returns the exit code: 0, 1 for an error, 2 for an invalid command line. */
export async function runCli(args: string[]): Promise<number> {
  const asJson = args.includes('--json');
  // The reader of a pipe may close it early, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  const program = createProgram();
  // All errors are written below, in one format.
  program.configureOutput({ outputError: () => {} });
  inherit(program);
  try {
    await program.parseAsync(args, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (thrown) {
    if (thrown instanceof CommanderError) {
      return thrown.exitCode === 0 ? 0 : usageError(thrown, helpFor(args, program), asJson);
    }
    const { code, message, data } = toTroupeError(thrown);
    process.stderr.write(errorText({ code, message, data }, asJson));
    if (code === 'internal' && process.env['TROUPE_DEBUG']) console.error(thrown);
    return 1;
  }
}

/** The `--help` command line of the innermost command that the arguments name. */
function helpFor([name, ...rest]: string[], { commands }: Command, path = 'troupe'): string {
  const meant = commands.find((command) => command.name() === name);
  return meant ? helpFor(rest, meant, `${path} ${name}`) : `${path} --help`;
}

function usageError({ code, message }: CommanderError, help: string, asJson: boolean): number {
  // Without a command, commander prints the help itself and reports that as an error.
  if (code !== 'commander.help') {
    const problem = message.replace(/^error: /, '').replace(/\.$/, '');
    const text = NEAREST.test(problem)
      ? `${problem.replace(NEAREST, '. $1"$2"?')} (see ${help})`
      : `${problem}; see ${help}`;
    process.stderr.write(errorText({ code: 'usage', message: text, data: {} }, asJson));
  }
  return USAGE;
}

function inherit(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent);
    inherit(command);
  }
}
