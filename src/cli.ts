#!/usr/bin/env node
import { nodeProblem } from './base/node-version.ts';

// The rest is imported afterwards, because a Node that is too old could not even parse it.
const problem = nodeProblem(process.versions.node);
if (problem === null) await import('./cli/start.ts');
else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}
