// Asks the browser to create a passkey or to sign with one when the form is submitted, and sends the result with it.
// All texts come from the data attributes of the page.
(() => {
  const form = document.querySelector('form[data-passkey]');
  const message = document.querySelector('[data-passkey-said]');
  const credentialField = form.querySelector('[data-passkey-answer]');
  // A code that the user may enter instead.
  const codeField = form.querySelector('[data-passkey-instead]');
  const showMessage = (key) => {
    message.hidden = !key;
    message.textContent = key ? message.dataset[key] : '';
  };
  if (!window.PublicKeyCredential || !navigator.credentials) return showMessage('unsupported');

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
  const text = (buffer) => {
    const plain = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join('');
    return btoa(plain).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  };
  const withIdBytes = (keys) => (keys ?? []).map((key) => ({ ...key, id: bytes(key.id) }));
  const options = JSON.parse(form.dataset.options);
  const publicKey = { ...options, challenge: bytes(options.challenge) };
  const create = async () => {
    const user = { ...options.user, id: bytes(options.user.id) };
    const excludeCredentials = withIdBytes(options.excludeCredentials);
    const key = await navigator.credentials.create({ publicKey: { ...publicKey, user, excludeCredentials } });
    const known = ['usb', 'nfc', 'ble', 'internal', 'hybrid'];
    const transports = (key.response.getTransports?.() ?? []).filter((transport) => known.includes(transport));
    return [key, { attestationObject: text(key.response.attestationObject), transports }];
  };
  const get = async () => {
    const key = await navigator.credentials.get({ publicKey: { ...publicKey, allowCredentials: withIdBytes(options.allowCredentials) } });
    const { authenticatorData, signature, userHandle } = key.response;
    const handle = userHandle ? text(userHandle) : null;
    return [key, { authenticatorData: text(authenticatorData), signature: text(signature), userHandle: handle }];
  };
  const messageKeys = { InvalidStateError: 'exists', NotAllowedError: 'cancelled', AbortError: 'cancelled' };

  let isPending = false;
  form.addEventListener('submit', async (event) => {
    if (codeField?.value) return;
    event.preventDefault();
    if (isPending) return;
    isPending = true;
    showMessage();
    try {
      const [key, response] = await (form.dataset.passkey === 'create' ? create() : get());
      response.clientDataJSON = text(key.response.clientDataJSON);
      credentialField.value = JSON.stringify({ id: key.id, rawId: text(key.rawId), type: key.type, response });
      // Calling `submit` directly does not trigger this listener again.
      HTMLFormElement.prototype.submit.call(form);
    } catch (error) {
      showMessage(messageKeys[error.name] ?? 'failed');
      isPending = false;
    }
  });
  form.hidden = false;
})();
