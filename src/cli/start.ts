import nodeModule from 'node:module';

// Must come before all other imports, because a short command spends half of its time compiling. Deno does not have it.
nodeModule.enableCompileCache?.();
const { runCli } = await import('./run-cli.ts');

process.exitCode = await runCli(process.argv.slice(2));
