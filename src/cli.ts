#!/usr/bin/env node
import { enableCompileCache } from 'node:module';

// Before anything else is loaded: half of the time of a short command is compiling.
enableCompileCache();
const { runCli } = await import('./cli/run-cli.ts');

process.exitCode = await runCli(process.argv.slice(2));
