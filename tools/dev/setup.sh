# Installs what NeuroShard needs: Debian packages, and a Python environment in build/venv.
# Sourced by ./dev, which sets root and venv_dir. Needs nothing but bash and coreutils.

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

required_packages() {
  sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$root/tools/dev/packages.txt"
}

missing_packages() {
  local package
  while read -r package; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
    ii*) ;;
    *) printf '%s\n' "$package" ;;
    esac
  done < <(required_packages)
}

is_debian_12() {
  [[ -r /etc/os-release ]] && (. /etc/os-release && [[ ${ID:-} == debian && ${VERSION_ID:-} == 12 ]])
}

explain_other_system() {
  {
    printf 'error: this is not Debian 12, so ./dev does not install packages here.\n'
    printf 'Install what these Debian packages contain, then name your LLVM and MLIR 22:\n\n'
    required_packages | sed 's/^/  /'
    printf '\n  MLIR_DIR=/path/to/llvm-22/lib/cmake/mlir ./dev check\n\n'
    printf 'docs/install.md tells more.\n'
  } >&2
  exit 1
}

# Runs a command as root, through sudo for any other user.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "installing packages needs root or sudo; as root run: apt-get install $(required_packages | tr '\n' ' ')"
  fi
}

install_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    [[ -n ${MLIR_DIR:-} ]] || explain_other_system
    return 0
  fi
  mapfile -t missing < <(missing_packages)
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if ! is_debian_12; then
    [[ -n ${MLIR_DIR:-} ]] || explain_other_system
    return 0
  fi
  printf '== install packages: %s\n' "${missing[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    "${missing[@]}" </dev/null ||
    die "apt-get could not install the packages; LLVM 22 comes from Debian 12's security" \
      "suite, so check that the apt sources have bookworm-security"
}

# Installs the versions that a file of tools/dev/requirements pins in build/venv, unless the same
# file was installed before.
install_requirements() {
  local file=tools/dev/requirements/$1 stamp=$venv_dir/installed-$1 wanted
  wanted=$(sha256sum <"$root/$file")
  if [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && "$venv_dir/bin/python" -c '' 2>/dev/null; then
    return 0
  fi
  printf '== install Python packages: %s\n' "$file"
  if ! "$venv_dir/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv_dir"
    python3 -m venv "$venv_dir"
  fi
  "$venv_dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    -r "$root/$file"
  printf '%s\n' "$wanted" >"$stamp"
}

# Installs what building needs.
setup_base() {
  install_packages
  install_requirements build.txt
}

# Installs what training needs as well. To run before configuring: CMake looks for PyTorch in
# build/venv.
setup_torch() {
  setup_base
  install_requirements torch.txt
}

# Installs what the demo needs.
setup_demo() {
  setup_torch
  install_requirements plots.txt
}

# Installs what the tests need.
setup_check() {
  setup_torch
  install_requirements plots.txt
  install_requirements check.txt
  install_requirements docs.txt
}

# Installs what the site of docs/ needs.
setup_docs() {
  install_packages
  install_requirements build.txt
  install_requirements docs.txt
}
