import { connection } from '../state/connection.ts';
import { serverToken } from '../state/settings.ts';
import { KeyForm } from './caller.tsx';
import '../style/home.css';

/** Asks for the server's token, and tells why the given one is not accepted. */
export function TokenForm() {
  const state = connection.value;
  if (state.state !== 'token') return null;
  return (
    <main class="home">
      <h1>{state.isKnown ? 'This key may not read' : 'This server requires a token'}</h1>
      {serverToken() !== null && (
        <p class="problem" role="alert">
          {state.isKnown
            ? `The server knows it, but ${state.message}.`
            : `The token was refused: ${state.message}.`}
        </p>
      )}
      <p class="quiet">An API key, or the TROUPE_TOKEN of the server. It is kept for this tab only.</p>
      <KeyForm />
    </main>
  );
}
