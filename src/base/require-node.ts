import { TroupeError } from './errors.ts';
import { nodeProblem } from './node-version.ts';

/**
 * Imported first by the library's entry, and so evaluated first. Throws `config_invalid` on a Node that is too old. The
 * line on stderr comes before the excerpt of this file that Node prints for an error nobody catches.
 */
const problem = nodeProblem(process.versions.node);
if (problem !== null) {
  process.stderr.write(`${problem}\n`);
  throw new TroupeError('config_invalid', problem, { version: process.versions.node });
}
